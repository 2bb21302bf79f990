"""Hard and smoothed top-K masks: exact laws where there are any, invariances, cost, and public reports on peers."""

import doctest
import itertools
import time

import numpy as np
import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from torch.utils._python_dispatch import TorchDispatchMode

from tasks.bpr import topk
from tasks.bpr.ranking import delta_ratio_scores
from tasks.bpr.topk import mean_field_top_k, perturbed_bpr, perturbed_top_k, top_k_mask

NOISES = [
    {"antithetic": True},
    {"antithetic": False, "baseline": True},
    {"antithetic": False, "baseline": False},
    {"gumbel": True},
]


@pytest.fixture(autouse=True)
def _one_thread():
    """As training runs by default; more threads that wait for a busy machine cost ten times the work itself."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0, dtype=torch.float64) -> torch.Tensor:
    return torch.randn(shape, generator=stream(seed), dtype=dtype)


def gradient(function, scores: torch.Tensor, upstream: torch.Tensor | None = None) -> torch.Tensor:
    scores = scores.detach().clone().requires_grad_()
    value = function(scores)
    value.backward(torch.ones_like(value) if upstream is None else upstream)
    return scores.grad


def drawn(k: int, sigma=0.5, n_samples: int = 100, seed: int = 0, **options):
    return lambda scores: perturbed_top_k(
        scores, k, sigma=sigma, n_samples=n_samples, generator=stream(seed), **options
    )


def smooth(k: int, sigma=0.5):
    return lambda scores: mean_field_top_k(scores, k, sigma=sigma)


def test_examples_in_docstrings():
    assert doctest.testmod(topk).failed == 0


class TestHardMask:
    @given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
    def test_ties_go_to_the_lower_index(self, scores, data):
        k = data.draw(st.integers(1, len(scores)))
        order = sorted(range(len(scores)), key=lambda site: (-scores[site], site))
        expected = [float(site in order[:k]) for site in range(len(scores))]
        assert top_k_mask(torch.tensor([scores]).float(), k).tolist() == [expected]

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
    def test_rows_with_and_without_ties_for_each_k(self, dtype):
        """The public report on ties gives other sites on other devices for k = 1..5 (pytorch 27542)."""
        scores = torch.tensor([[1, 2, 2, 0, 2, 1], [5, 4, 3, 2, 1, 0], [0, 0, 0, 0, 0, -0.0]], dtype=dtype)
        places = [[1, 2, 4, 0, 5, 3], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]]
        for k in range(1, 7):
            mask = top_k_mask(scores, k)
            assert mask.dtype == dtype
            assert [set(row.nonzero().flatten().tolist()) for row in mask] == [set(p[:k]) for p in places]

    def test_many_axes_and_no_gradient(self):
        scores = normal(2, 3, 7).requires_grad_()
        mask = top_k_mask(scores, 3)
        assert not mask.requires_grad
        assert mask.sum(-1).eq(3).all()
        assert (scores * mask).sum(-1).allclose(scores.topk(3).values.sum(-1))

    @pytest.mark.skipif(
        not torch.cuda.is_available(), reason="compares choices on a CUDA GPU with those on the CPU: there is no GPU"
    )
    def test_equal_on_devices(self):
        scores = torch.randint(0, 50, (20, 1000), generator=stream()).float()
        assert torch.equal(top_k_mask(scores, 100), top_k_mask(scores.cuda(), 100).cpu())

    def test_a_long_row_is_never_slower_than_a_sort(self):
        """pytorch 22812: one row of 2e6, k = 1000. Here 10 ms, a sort 200."""
        scores = torch.randn(1, 2_000_000, generator=stream())

        def cost(function) -> float:
            begin = time.process_time()
            function()
            return time.process_time() - begin

        ours = min(cost(lambda: top_k_mask(scores, 1000)) for _ in range(3))
        assert ours < min(cost(lambda: scores.sort()) for _ in range(3))


class TestLaws:
    """Where the smoothed mask is known exactly."""

    @pytest.mark.parametrize("k", [1, 2])
    def test_three_sites_normal(self, k):
        """Site s wins against u where z_u < z_s + (r_s - r_u)/sigma: an integral over z_s; K = 2 loses all but one."""
        scores, sigma = np.array([0.3, 0.0, -0.4]), 0.5
        sign = 1 if k == 1 else -1

        def wins(site: int, z: float) -> float:
            others = [sign * (scores[site] - scores[u]) / sigma + z for u in range(3) if u != site]
            return stats.norm.pdf(z) * np.prod(stats.norm.cdf(others))

        exact = np.array([integrate.quad(lambda z, s=s: wins(s, z), -10, 10)[0] for s in range(3)])
        exact = exact if k == 1 else 1 - exact
        n = 200_000
        for options in NOISES[:2]:
            found = drawn(k, sigma, n, **options)(torch.from_numpy(scores)).numpy()
            assert (np.abs(found - exact) < 4.5 * np.sqrt(exact * (1 - exact) / n)).all()

    def test_gumbel_noise_is_the_softmax(self):
        scores, sigma, n = torch.tensor([0.3, 0.0, -0.4, 0.1]).double(), 0.5, 200_000
        exact = torch.softmax(scores / sigma, 0)
        found = drawn(1, sigma, n, gumbel=True)(scores)
        assert ((found - exact).abs() < 4.5 * (exact * (1 - exact) / n).sqrt()).all()
        upstream = torch.tensor([1.0, -2.0, 0.5, 3.0]).double()
        jacobian = (torch.diag(exact) - exact[:, None] * exact) / sigma
        torch.testing.assert_close(
            gradient(drawn(1, sigma, n, gumbel=True), scores, upstream), jacobian @ upstream, rtol=0, atol=0.08
        )

    @pytest.mark.parametrize("sigma", [0.1, 0.5])
    @pytest.mark.parametrize("options", NOISES[:3])
    def test_two_sites_value_and_gradient(self, options, sigma):
        """b = Φ(d/(sigma√2)). optax 1308: a gradient of sigma instead of 1, seen only for sigma other than 1.

        Means of 4000 estimates of four draws each: unbiased also for few draws.
        """
        gap = 0.8 * sigma
        scores = torch.tensor([[gap, 0.0]]).double().expand(4000, 2)
        upstream = torch.tensor([1.0, 0.0]).double().expand(4000, 2)
        scale = sigma * np.sqrt(2)
        value = drawn(1, sigma, 4, **options)(scores)[:, 0]
        found = gradient(drawn(1, sigma, 4, **options), scores, upstream)
        for estimates, exact in (
            (value, stats.norm.cdf(gap / scale)),
            (found[:, 0], stats.norm.pdf(gap / scale) / scale),
            (found[:, 1], -stats.norm.pdf(gap / scale) / scale),
        ):
            error = estimates.std().item() / np.sqrt(4000)
            assert abs(estimates.mean().item() - exact) < 4.5 * error
            assert error < 0.05 * abs(exact)  # small enough to tell a wrong factor

    @pytest.mark.parametrize("baseline", [True, False])
    def test_formula_of_the_gradient(self, baseline):
        """Every draw against the mean of the others: v_j - mean of v_i, i ≠ j; without baseline v_j itself."""
        scores, noise, upstream, n = normal(12), normal(7, 12, seed=1), normal(12, seed=2), 7
        v = top_k_mask(scores + 0.5 * noise, 4) @ upstream
        v = torch.stack([v[j] - baseline * v[torch.arange(n) != j].mean() for j in range(n)])
        found = gradient(lambda r: perturbed_top_k(r, 4, sigma=0.5, noise=noise, baseline=baseline), scores, upstream)
        torch.testing.assert_close(found, v @ noise / (n * 0.5), rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("sigma", [0.1, 0.5])
    def test_finite_differences_with_common_noise(self, sigma):
        """The same noise at both ends; steps of 0.1 sigma. The public test of optax 1308 on our operator."""
        scores, step = normal(12, seed=3) * sigma, 0.1 * sigma
        noise = normal(400_000, 12, seed=4)
        upstream = normal(12, seed=5)

        def value(at: torch.Tensor) -> torch.Tensor:
            return perturbed_top_k(at, 4, sigma=sigma, noise=noise) @ upstream

        found = gradient(value, scores)
        for site in range(0, 12, 4):
            shift = torch.eye(12).double()[site] * step
            difference = (value(scores + shift) - value(scores - shift)) / (2 * step)
            assert abs(found[site] - difference) < 0.02 / sigma
        assert found.abs().max() > 0.2 / sigma  # a lost or doubled sigma would show

    @pytest.mark.parametrize(
        ("n_sites", "k", "most", "cosine"), [(12, 4, 0.03, 0.998), (50, 10, 0.012, 0.998), (200, 20, 0.006, 0.995)]
    )
    def test_draws_come_to_the_mean_field_as_sites_grow(self, n_sites, k, most, cosine):
        scores, upstream = normal(n_sites, seed=1), normal(n_sites, seed=2)
        value = drawn(k, 1.0, 100_000)(scores)
        assert (value - smooth(k, 1.0)(scores)).abs().max() < most
        exact, limit = (gradient(f, scores, upstream) for f in (drawn(k, 1.0, 100_000), smooth(k, 1.0)))
        assert torch.cosine_similarity(exact, limit, 0) > cosine  # the draws' own noise grows with the sites

    def test_mean_field_gradient_is_that_of_its_value(self):
        scores = normal(3, 9).requires_grad_()
        sigma = torch.tensor([0.2, 1.0, 5.0]).double()
        assert torch.autograd.gradcheck(lambda r: mean_field_top_k(r, 4, sigma=sigma), scores)


SHAPES = ["normal", "skewed", "equal", "two values"]


def shaped(kind: str, n_sites: int) -> torch.Tensor:
    uniform = torch.rand(3, n_sites, generator=stream(), dtype=torch.float64)
    return {
        "normal": normal(3, n_sites),
        "skewed": uniform**20,
        "equal": torch.full_like(uniform, 0.1),
        "two values": (uniform < 0.05).double(),
    }[kind]


@pytest.mark.parametrize(("n_sites", "k"), [(2, 1), (7, 5), (12, 4), (1328, 100), (1000, 999), (20_000, 10)])
@pytest.mark.parametrize("kind", SHAPES)
def test_mean_field_sums_to_k_for_any_scores_and_any_sigma(kind, n_sites, k, monkeypatch):
    steps = []
    density = torch.special.ndtr
    monkeypatch.setattr(torch.special, "ndtr", lambda u: steps.append(1) or density(u))
    for sigma in (1e-300, 1e-20, 1e-5, 1e-3, 0.1, 1.0, 100.0, 1e20):
        steps.clear()
        mask = mean_field_top_k(shaped(kind, n_sites), k, sigma=sigma)
        assert (mask.sum(-1) - k).abs().max() < 1e-6
        assert 0 <= mask.min() <= mask.max() <= 1
        assert len(steps) <= 8


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("options", NOISES)
def test_drawn_masks_sum_to_k(kind, options):
    for dtype in (torch.float32, torch.float64):
        mask = drawn(5, 0.3, 50, **options)(shaped(kind, 40).to(dtype))
        torch.testing.assert_close(mask.sum(-1), torch.full((3,), 5.0, dtype=dtype), rtol=1e-6, atol=0)
        assert 0 <= mask.min() <= mask.max() <= 1


def test_scores_at_an_infinite_distance_in_units_of_sigma():
    scores = torch.tensor([3e10, 1e10, -2e10, 0.0]).double()
    assert mean_field_top_k(scores, 2, sigma=1e-300).tolist() == [1, 1, 0, 0]


def test_the_sum_has_the_gradient_zero():
    """fast-soft-sort 10: not a fault but what a constant sum must give."""
    for function in (drawn(5), drawn(5, antithetic=False), drawn(5, gumbel=True)):
        assert not gradient(function, normal(3, 40)).any()
    assert gradient(smooth(5), normal(3, 40)).abs().max() < 1e-14


@pytest.mark.parametrize("make", [drawn, smooth])
def test_shift_and_scale(make):
    """r + c leaves mask and gradient; (a r, a sigma) leaves the mask and divides the gradient by a."""
    scores, upstream = normal(4, 60), normal(4, 60, seed=1)
    mask, slope = make(9, 0.4)(scores), gradient(make(9, 0.4), scores, upstream)
    torch.testing.assert_close(make(9, 0.4)(scores + 3), mask, rtol=0, atol=1e-12)
    torch.testing.assert_close(gradient(make(9, 0.4), scores + 3, upstream), slope, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(make(9, 0.4 * 8)(scores * 8), mask, rtol=0, atol=1e-12)
    torch.testing.assert_close(gradient(make(9, 0.4 * 8), scores * 8, upstream), slope / 8, rtol=1e-9, atol=1e-12)


def test_permutation_of_sites():
    scores, upstream, noise = normal(30), normal(30, seed=1), normal(50, 30, seed=2)
    order = torch.randperm(30, generator=stream())

    def both(at, value, noise):
        masks = smooth(7), lambda r: perturbed_top_k(r, 7, sigma=0.5, noise=noise), lambda r: top_k_mask(r, 7)
        return [f(at) for f in masks] + [gradient(f, at, value) for f in masks[:2]]

    plain, permuted = both(scores, upstream, noise), both(scores[order], upstream[order], noise[:, order])
    for expected, found in zip(plain, permuted, strict=True):
        torch.testing.assert_close(found, expected[order], rtol=1e-10, atol=1e-12)


def test_all_sites_chosen():
    scores, upstream = normal(3, 5), normal(3, 5, seed=1)
    for function in (smooth(5), drawn(5), lambda r: perturbed_top_k(r, 5, sigma=1, noise=normal(9, 3, 5))):
        assert function(scores).eq(1).all()
        assert gradient(function, scores, upstream).abs().max() < 1e-13


class TestSmallSigma:
    """jaxopt 413 and 418: the norm of the Jacobian grows as 1/sigma although the function stops to change."""

    SCORES = torch.arange(20.0, dtype=torch.float64)

    def test_well_separated_scores_have_the_gradient_zero(self):
        upstream = normal(20, seed=1)
        for function in (
            drawn(6, 1e-5),
            drawn(6, 1e-5, antithetic=False),
            drawn(6, 1e-5, gumbel=True),
            smooth(6, 1e-5),
        ):
            assert torch.equal(function(self.SCORES), top_k_mask(self.SCORES, 6))
            assert not gradient(function, self.SCORES, upstream).any()
        published = gradient(drawn(6, 1e-5, antithetic=False, baseline=False), self.SCORES, upstream)
        assert published.norm() > 1e3

    @pytest.mark.parametrize("options", NOISES[:2])
    def test_control_variates_lower_the_variance(self, options):
        scores, upstream = normal(1, 200).expand(50, 200), 3 + normal(1, 200, seed=1).expand(50, 200)
        ours, published = (
            gradient(drawn(20, 0.3, 20, **o), scores, upstream).var(0).sum() for o in (options, NOISES[2])
        )
        assert ours < published / 50

    def test_bpr_form(self):
        value = gradient(
            lambda r: perturbed_bpr(r, self.SCORES, 6, sigma=1e-5, n_samples=9, generator=stream()), self.SCORES
        )
        assert not value.any()


class TestPerturbedBPR:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("options", NOISES)
    @pytest.mark.parametrize("block", [1 << 19, 3 * 50 * 7])
    def test_equals_the_mask_form_in_any_number_of_blocks(self, block, options, dtype, monkeypatch):
        """The mask's gradient draws its noise a second time; here it is used at once."""
        monkeypatch.setattr(topk, "BLOCK", block)
        scores, counts = normal(3, 50, dtype=dtype), torch.poisson(torch.ones(3, 50), stream(1)).to(dtype)
        share = counts / counts.topk(10).values.sum(-1, keepdim=True)
        mask, slope = drawn(10, 0.4, 40, **options)(scores), gradient(drawn(10, 0.4, 40, **options), scores, share)
        reached = lambda r: perturbed_bpr(r, counts, 10, sigma=0.4, n_samples=40, generator=stream(), **options)  # noqa: E731
        tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-12}
        torch.testing.assert_close(reached(scores), (mask * share).sum(-1), **tolerance)
        torch.testing.assert_close(gradient(reached, scores), slope, **tolerance)
        assert reached(scores).dtype == dtype

    def test_a_period_without_events_gives_0_and_no_gradient(self):
        counts = torch.zeros(2, 8)
        counts[1, 3] = 1
        reached = lambda r: perturbed_bpr(r, counts, 2, sigma=1.0, n_samples=50, generator=stream())  # noqa: E731
        scores = normal(2, 8, dtype=torch.float32)
        assert reached(scores)[0] == 0
        assert reached(scores)[1] > 0
        slope = gradient(reached, scores)
        assert not slope[0].any()
        assert slope[1].any()

    def test_counts_of_other_types(self):
        counts = torch.tensor([3, 0, 1, 2], dtype=torch.int16)
        found = [
            perturbed_bpr(normal(4), c, 2, sigma=0.5, n_samples=20, generator=stream())
            for c in (counts, counts.double())
        ]
        assert torch.equal(*found)


@pytest.mark.parametrize("shape", [(9,), (2, 9), (2, 3, 9)])
def test_any_number_of_axes(shape):
    """optax 1309: only vectors. Here rows by themselves, each with its sigma and its noise, are the same."""
    scores, upstream, noise = normal(*shape), normal(*shape, seed=1), normal(30, *shape, seed=2)
    sigma = torch.rand(shape[:-1], generator=stream(), dtype=torch.float64) + 0.1
    draws = lambda r, s, z: perturbed_top_k(r, 3, sigma=s, noise=z)  # noqa: E731
    limit = lambda r, s, z: mean_field_top_k(r, 3, sigma=s)  # noqa: E731
    for function in (draws, limit):
        mask = function(scores, sigma, noise)
        slope = gradient(lambda r, f=function: f(r, sigma, noise), scores, upstream)
        assert mask.shape == slope.shape == shape
        for place in itertools.product(*map(range, shape[:-1])):
            own = noise[(slice(None), *place)]
            alone = function(scores[place], float(sigma[place]), own)
            torch.testing.assert_close(mask[place], alone, rtol=1e-13, atol=0)
            one = gradient(lambda r, f=function, p=place, z=own: f(r, sigma[p], z), scores[place], upstream[place])
            torch.testing.assert_close(slope[place], one, rtol=1e-10, atol=1e-12)


def test_a_row_of_the_mean_field_does_not_depend_on_the_rows_beside_it():
    scores = normal(6, 500) * torch.logspace(-3, 3, 6, dtype=torch.float64)[:, None]
    together = mean_field_top_k(scores, 40, sigma=0.1)
    for row in range(6):
        assert torch.equal(together[row], mean_field_top_k(scores[row : row + 1], 40, sigma=0.1)[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_types_stay(dtype):
    scores = normal(2, 30).to(dtype)
    for function in (drawn(4), smooth(4), lambda r: top_k_mask(r, 4) + 0 * r):
        assert function(scores).dtype == gradient(function, scores).dtype == dtype
    torch.testing.assert_close(smooth(4)(scores).double(), smooth(4)(scores.double()), rtol=0.01, atol=1e-3)


def test_sigma_is_a_constant():
    sigma = torch.tensor(0.5, requires_grad=True)
    for function in (drawn(4, sigma), smooth(4, sigma)):
        function(normal(30).requires_grad_()).square().sum().backward()
    assert sigma.grad is None
    assert not smooth(4, sigma)(normal(30)).requires_grad


class TestRandomness:
    SCORES = normal(3, 50, dtype=torch.float32)

    def _both(self, seed: int, **options) -> list[torch.Tensor]:
        function = drawn(5, 0.5, 30, seed, **options)
        return [function(self.SCORES), gradient(function, self.SCORES, self.SCORES)]

    def test_the_generator_alone_decides(self, monkeypatch):
        """pytorch 175478: the same whatever else has drawn, and nothing is taken from the global stream."""
        monkeypatch.setattr(topk, "BLOCK", 3 * 50 * 4)
        before = torch.random.get_rng_state()
        first = self._both(1)
        assert torch.equal(before, torch.random.get_rng_state())
        torch.randn(10)
        assert all(map(torch.equal, first, self._both(1)))
        assert not any(map(torch.equal, first, self._both(2)))

    def test_the_generator_moves_on(self):
        generator = stream()
        one, two = (perturbed_top_k(self.SCORES, 5, sigma=0.5, n_samples=30, generator=generator) for _ in range(2))
        assert not torch.equal(one, two)

    def test_blocks_differ(self, monkeypatch):
        """Or a hundred draws would be one, seen a hundred times."""
        monkeypatch.setattr(topk, "BLOCK", 50)
        mask = drawn(5, 0.5, 64, antithetic=False)(self.SCORES)
        assert ((mask > 0.02) & (mask < 0.98) & (mask != 0.5)).sum() > 20

    def test_number_of_threads(self):
        found = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            scores = normal(2, 40_000, dtype=torch.float32)
            function = drawn(500, 0.1, 10)
            found.append([function(scores), gradient(function, scores, scores)])
        assert torch.equal(found[0][0], found[1][0])
        torch.testing.assert_close(found[0][1], found[1][1], rtol=1e-4, atol=1e-6)

    def test_an_odd_number_of_pairs_is_rounded_up(self):
        three, four = (drawn(5, 0.5, n)(self.SCORES) for n in (3, 4))
        assert torch.equal(three, four)
        assert ((four * 4) % 1 == 0).all()

    def test_pairs_are_mirrored(self):
        """One pair at scores far within the noise: a site chosen with z is not chosen with -z."""
        mask = drawn(25, 100.0, 2)(torch.zeros(50))
        assert (mask == 0.5).all()


class _Largest(TorchDispatchMode):
    """Elements of the largest tensor that any operation returns."""

    size = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, torch.Tensor):
                self.size = max(self.size, tensor.numel())
        return result


class TestCost:
    @pytest.mark.parametrize("k", [10, 3000])
    def test_no_array_grows_with_draws_or_k(self, k):
        """S = 20000, J = 200: a one-hot of S·J·K would hold 1.2e10 numbers, all draws 4e6; blocks hold 5e5."""
        scores, counts = torch.zeros(1, 20_000), torch.ones(1, 20_000)
        with _Largest() as largest:
            gradient(drawn(k, 1.0, 200), scores)
            gradient(lambda r: perturbed_bpr(r, counts, k, sigma=1.0, n_samples=200, generator=stream()), scores)
        assert 20_000 < largest.size <= topk.BLOCK

    def test_memory_stays_over_a_thousand_steps(self):
        """torchsort 29: memory that grows with every backward pass."""
        scores = normal(12_000, dtype=torch.float32).requires_grad_()
        counts, process, sizes = torch.ones(12_000), psutil.Process(), []
        for step in range(1200):
            if step % 1000 == 200:
                sizes.append(process.memory_info().rss)
            generator = stream(step)
            mask = perturbed_top_k(scores, 50, sigma=0.5, n_samples=4, generator=generator)
            reached = perturbed_bpr(scores, counts, 50, sigma=0.5, n_samples=4, generator=generator)
            loss = mask.square().sum() + reached.sum() + mean_field_top_k(scores, 50, sigma=0.5).square().sum()
            loss.backward()
        sizes.append(process.memory_info().rss)
        assert sizes[1] - sizes[0] < 16 << 20  # one array left over at each step is 48 MB

    def test_a_step_of_a_hundred_thousand_sites_without_set_up(self):
        """cvxpylayers 33: 42 s of set-up for 100. Here the first step takes 0.02 s; the bound is for slow machines."""
        mean = torch.rand(1, 100_000, generator=stream()).requires_grad_()
        begin = time.process_time()
        scores = delta_ratio_scores(mean, 2 * mean)
        mask = mean_field_top_k(scores, 1000, sigma=float(scores.detach().median()) / 10)
        (mask * torch.ones_like(mask).cumsum(-1)).sum().backward()
        assert time.process_time() - begin < 0.5
        assert torch.isfinite(mean.grad).all()
        assert mean.grad.any()

    def test_ten_rows_of_a_hundred_thousand_sites(self):
        """0.1 s of CPU time, forward and backward."""
        scores = normal(10, 100_000, dtype=torch.float32)
        begin = time.process_time()
        gradient(smooth(1000, 0.1), scores, scores)
        assert time.process_time() - begin < 1

    def test_a_hundred_draws_of_four_years_of_cook(self):
        """0.006 s of CPU time, forward and backward."""
        scores = normal(4, 1328, dtype=torch.float32)
        begin = time.process_time()
        gradient(drawn(100, 0.3, 100), scores, scores)
        assert time.process_time() - begin < 0.2


def changed(value: float) -> torch.Tensor:
    scores = torch.arange(6.0).reshape(2, 3)
    scores[1, 2] = value
    return scores


GOOD = changed(5.0)
SITES = r"whole numbers from 1 to 3, the number of sites"
FLOATING = r"a floating-point torch tensor"
REFUSED = {
    "missing score": ({"scores": changed(np.nan)}, r"scores[1, 2] is nan; allowed: finite numbers"),
    "infinite score": ({"scores": changed(np.inf)}, r"scores[1, 2] is inf; allowed: finite numbers"),
    "whole scores": ({"scores": GOOD.long()}, rf"scores has type torch.int64; allowed: {FLOATING}"),
    "numpy": ({"scores": GOOD.numpy()}, rf"scores has type float32; allowed: {FLOATING}"),
    "list": ({"scores": [1.0, 2.0]}, rf"scores has type list; allowed: {FLOATING}"),
    "no axis": ({"scores": torch.tensor(1.0)}, r"scores has shape []; allowed: [..., sites], not empty"),
    "no site": ({"scores": torch.zeros(2, 0)}, r"scores has shape [2, 0]; allowed: [..., sites], not empty"),
    "K of 0": ({"k": 0}, rf"k is 0; allowed: {SITES}"),
    "K above S": ({"k": 4}, rf"k is 4; allowed: {SITES}"),
    "K no number": ({"k": "2"}, rf"k is '2'; allowed: {SITES}"),
}
REFUSED_SIGMA = {
    "sigma of 0": ({"sigma": 0.0}, r"sigma is 0.0; allowed: finite numbers above 0"),
    "sigma missing": ({"sigma": float("nan")}, r"sigma is nan; allowed: finite numbers above 0"),
    "sigma infinite": ({"sigma": float("inf")}, r"sigma is inf; allowed: finite numbers above 0"),
    "one sigma": ({"sigma": torch.tensor([1.0, -2.0])}, r"sigma[1] is -2; allowed: finite numbers above 0"),
    "sigmas": (
        {"sigma": torch.ones(3)},
        r"sigma has shape [3]; allowed: broadcastable to [2], the scores' shape without sites",
    ),
}
REFUSED_DRAWS = {
    "one draw": ({"n_samples": 1}, r"n_samples is 1; allowed: whole numbers from 2"),
    "no number": ({"n_samples": None}, r"n_samples is None; allowed: whole numbers from 2"),
    "no generator": ({"generator": None}, r"generator is None; allowed: a torch.Generator, or the noise itself"),
    "noise of other sites": (
        {"noise": torch.zeros(9, 2, 4)},
        r"noise has shape [9, 2, 4]; allowed: the shape of n_samples and scores, [9, 2, 3]",
    ),
    "noise of other number": (
        {"noise": torch.zeros(8, 2, 3)},
        r"noise has shape [8, 2, 3]; allowed: the shape of n_samples and scores, [9, 2, 3]",
    ),
    "one noise": (
        {"noise": torch.zeros(1, 2, 3), "n_samples": None},
        r"noise has 1 draws; allowed: from 2",
    ),
    "noise missing": (
        {"noise": torch.full((9, 2, 3), torch.nan)},
        r"noise[0, 0, 0] is nan; allowed: finite numbers",
    ),
}
REFUSED_COUNTS = {
    "negative count": ({"counts": changed(-1)}, r"counts[1, 2] is -1; allowed: finite numbers, not negative"),
    "missing count": ({"counts": changed(np.nan)}, r"counts[1, 2] is nan; allowed: finite numbers, not negative"),
    "other shape": ({"counts": GOOD[0]}, r"counts has shape [3]; allowed: the shape of scores, [2, 3]"),
}
ARGUMENTS = {"scores": GOOD, "k": 2, "sigma": 1.0, "n_samples": 9, "generator": stream(), "counts": GOOD}
FUNCTIONS = {
    top_k_mask: ({"scores", "k"}, REFUSED),
    mean_field_top_k: ({"scores", "k", "sigma"}, REFUSED | REFUSED_SIGMA),
    perturbed_top_k: (set(ARGUMENTS) - {"counts"}, REFUSED | REFUSED_SIGMA | REFUSED_DRAWS),
    perturbed_bpr: (set(ARGUMENTS), REFUSED | REFUSED_SIGMA | REFUSED_DRAWS | REFUSED_COUNTS),
}


@pytest.mark.parametrize(
    ("function", "fault"),
    [(f, fault) for f, (_, faults) in FUNCTIONS.items() for fault in faults],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_refused_in_one_line(function, fault):
    names, faults = FUNCTIONS[function]
    change, message = faults[fault]
    arguments = {name: ARGUMENTS[name] for name in names} | change
    with pytest.raises(ValueError) as error:  # noqa: PT011
        function(**arguments)
    assert str(error.value) == message


@pytest.mark.parametrize("function", list(FUNCTIONS))
def test_what_is_refused_differs_from_what_works(function):
    assert torch.isfinite(function(**{name: ARGUMENTS[name] for name in FUNCTIONS[function][0]})).all()
