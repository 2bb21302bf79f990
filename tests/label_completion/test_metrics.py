"""Agreement of workers, and accuracies with their intervals."""

import numpy as np
import pandas as pd
import pytest

from tasks.label_completion.answers import encode
from tasks.label_completion.metrics import Bootstrap, krippendorff_alpha
from tests.label_completion import reference


def alpha(*labels_by_task: str) -> float:
    rows = [(task, worker, label) for task, labels in enumerate(labels_by_task) for worker, label in enumerate(labels)]
    return krippendorff_alpha(encode(pd.DataFrame(rows, columns=["task", "worker", "label"])))


class TestAlpha:
    def test_the_example_of_krippendorffs_book(self):
        """Nominal data of twelve units and four observers, "Computing Krippendorff's Alpha-Reliability", section C."""
        observers = ["123321412***", "1233224125*3", "*3332342251*", "12332441251*"]
        units = ["".join(ratings).replace("*", "") for ratings in zip(*observers, strict=True)]
        assert alpha(*units) == pytest.approx(0.743, abs=5e-4)

    @pytest.mark.parametrize("seed", range(5))
    def test_equals_a_count_of_all_pairs(self, seed):
        generator = np.random.default_rng(seed)
        units = ["".join(generator.choice(list("abc"), generator.integers(1, 6), p=[0.6, 0.3, 0.1])) for _ in range(12)]
        pairs = [(task, label) for task, labels in enumerate(units) for label in labels]
        assert alpha(*units) == pytest.approx(reference.krippendorff_alpha(pairs), abs=1e-12)

    def test_equals_crowdkits(self):
        from crowdkit.metrics.data import alpha_krippendorff

        generator = np.random.default_rng(1)
        answers = pd.DataFrame({"task": np.repeat(range(30), 3), "worker": np.tile(range(3), 30)})
        answers["label"] = generator.integers(0, 3, 90)
        assert krippendorff_alpha(encode(answers)) == pytest.approx(alpha_krippendorff(answers))

    def test_perfect_agreement_is_one_also_with_one_class(self):
        assert alpha("aa", "bb", "b") == 1
        assert alpha("aa", "aaa") == 1

    def test_constant_disagreement_is_below_zero(self):
        assert alpha("ab", "ab", "ab") < 0

    def test_tasks_with_one_answer_do_not_count(self):
        assert alpha("aa", "ab", "bb") == alpha("aa", "ab", "bb", "a", "b", "b", "b")

    def test_nothing_to_compare_is_nan(self):
        assert np.isnan(alpha("a", "b"))


class TestBootstrap:
    def test_interval_covers_as_often_as_it_says(self):
        """Of 300 samples of 80 tasks, the share 0.7 lies in the 90 % interval about 270 times."""
        inside = 0
        for seed in range(300):
            right = (np.random.default_rng(seed).random((1, 80)) < 0.7).astype(np.int64)
            found = Bootstrap(1, 80, np.random.default_rng(1000 + seed), n_resamples=300, confidence=0.9).ratio(right)
            assert found.low <= found.value <= found.high
            inside += found.low <= 0.7 <= found.high
        assert 255 <= inside <= 285

    def test_repeats_widen_the_interval(self):
        """All tasks right in one repeat, none in the other: the draw of answers is what is uncertain."""
        right = np.vstack([np.ones((1, 50), np.int64), np.zeros((1, 50), np.int64)])
        found = Bootstrap(2, 50, np.random.default_rng(0), n_resamples=500, confidence=0.95).ratio(right)
        assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)

    def test_differences_are_paired(self):
        """Labels that are right on the same tasks and one more differ by exactly that one."""
        generator = np.random.default_rng(1)
        a = (generator.random((3, 60)) < 0.5).astype(np.int64)
        bootstrap = Bootstrap(3, 60, generator, n_resamples=400, confidence=0.95)
        assert bootstrap.ratio(a - a) == bootstrap.ratio(np.zeros_like(a))
        wide, narrow = bootstrap.ratio(a), bootstrap.ratio(np.maximum(a, np.arange(60) == 0) - a)
        assert narrow.high - narrow.low < wide.high - wide.low

    def test_ratio_of_sums(self):
        above, below = np.array([[1, 2, 0]]), np.array([[2, 2, 0]])
        found = Bootstrap(1, 3, np.random.default_rng(2), n_resamples=200, confidence=0.9).ratio(above, below)
        assert found.value == 0.75

    def test_nothing_to_divide_by(self):
        nothing = np.zeros((1, 4), np.int64)
        found = Bootstrap(1, 4, np.random.default_rng(3), n_resamples=100, confidence=0.9).ratio(nothing, nothing)
        assert np.isnan(found.value)
        assert found.low is found.high is None

    def test_the_same_generator_gives_the_same_interval(self):
        right = (np.random.default_rng(4).random((2, 40)) < 0.6).astype(np.int64)
        found = [
            Bootstrap(2, 40, np.random.default_rng(5), n_resamples=200, confidence=0.9).ratio(right) for _ in range(2)
        ]
        assert found[0] == found[1]
