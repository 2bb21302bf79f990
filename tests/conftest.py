"""Settings of all tests."""

import hypothesis

# The same examples in every run: a failure can be repeated, and a passing suite stays passing.
hypothesis.settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=25, database=None, print_blob=False
)
hypothesis.settings.load_profile("steady")
