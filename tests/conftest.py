"""Settings of all tests."""

import signal

import hypothesis

import tasks  # noqa: F401  (one BLAS thread and one kernel baseline, before a test imports numpy or torch)

# A shell starts its background jobs with Ctrl-C ignored, and children inherit that; tests send Ctrl-C to their children.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run: a failure can be repeated, and a passing suite stays passing.
hypothesis.settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=25, database=None, print_blob=False
)
hypothesis.settings.load_profile("steady")
