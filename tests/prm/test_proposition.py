"""Prefix rewards are the soft forecasts of the response's reward: an identity of any two language models, enumerated.

    q^t = β Σ_{i ≤ t} d_i = β log E_{y_{>t} ~ reference} [exp(r(y) / β)],   E[r | y_{≤t}] ≤ q^t ≤ max r

Yuan et al., ICML 2025, propositions 3.1 and 3.2. A response ends with its end token or at T tokens; for one that was
cut there, r is that of its first T tokens.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp
from transformers import LlamaConfig, LlamaForCausalLM

from tasks.lm.logprobs import token_log_probs

END, T = 0, 4
BETAS = (0.05, 0.5, 5.0)
PROMPT = [1, 2, 1]
TOLERANCE = 1e-5


@dataclass
class Responses:
    """All responses of at most T tokens, and the log-probabilities of their tokens under two models, 0 after the end."""

    tokens: list[tuple[int, ...]]
    policy: np.ndarray
    reference: np.ndarray

    def prefixes(self):
        """For every prefix: (its length, rows of the responses that begin with it)."""
        for length in range(T + 1):
            found = {}
            for row, tokens in enumerate(self.tokens):
                if len(tokens) >= length:
                    found.setdefault(tokens[:length], []).append(row)
            for rows in found.values():
                yield length, rows

    def forecasts(self, beta: float, rewards: np.ndarray | None = None):
        """For every prefix: q, β log E exp(r / β), E r and max r; r is that of the two models unless given."""
        ratio = beta * (self.policy - self.reference)
        rewards = ratio.sum(1) if rewards is None else rewards
        for length, rows in self.prefixes():
            suffix, r = self.reference[rows, length:].sum(1), rewards[rows]
            soft = beta * logsumexp(suffix + r / beta)
            yield ratio[rows[0], :length].sum(), soft, np.exp(suffix) @ r, r.max()


def all_responses(vocabulary: int) -> list[tuple[int, ...]]:
    inner = range(1, vocabulary)
    finished = [(*t, END) for n in range(T) for t in itertools.product(inner, repeat=n)]
    return finished + list(itertools.product(inner, repeat=T))


def padded(rows) -> np.ndarray:
    return np.array([np.pad(np.asarray(row, dtype=np.float64), (0, T - len(row))) for row in rows])


def of_tables(vocabulary: int, seed: int, scale: float = 2.0) -> Responses:
    """Two models that give every prefix a distribution of its own."""
    rng, tokens = np.random.default_rng(seed), all_responses(vocabulary)
    inner = range(1, vocabulary)
    states = [s for n in range(T) for s in itertools.product(inner, repeat=n)]
    policy, reference = ({s: log_softmax(scale * rng.normal(size=vocabulary)) for s in states} for _ in range(2))
    values = [padded([[table[t[:i]][t[i]] for i in range(len(t))] for t in tokens]) for table in (policy, reference)]
    return Responses(tokens, *values)


def of_llamas(vocabulary: int, seed: int, dtype: torch.dtype) -> Responses:
    """Two random Llamas, scored as the product scores."""
    tokens, values = all_responses(vocabulary), []
    for number in (0, 1):
        config = LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=16,
            initializer_range=0.8,  # far from uniform
            pad_token_id=END,
            bos_token_id=None,
            eos_token_id=END,
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(2 * seed + number)
            model = LlamaForCausalLM(config).to(dtype).eval()
        values.append(padded(token_log_probs(model, [PROMPT] * len(tokens), [list(t) for t in tokens])))
    return Responses(tokens, *values)


def check(responses: Responses, beta: float) -> None:
    for q, soft, mean, most in responses.forecasts(beta):
        assert abs(q - soft) <= TOLERANCE
        assert mean - TOLERANCE <= q <= most + TOLERANCE


@pytest.mark.parametrize("vocabulary", [3, 4])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_proposition_holds_for_llamas(vocabulary, seed):
    """Fails for a mask that is shifted by one, loses the end token or counts one of the prompt."""
    for dtype in (torch.float32, torch.float64):
        responses = of_llamas(vocabulary, seed, dtype)
        total = logsumexp(responses.reference.sum(1)), logsumexp(responses.policy.sum(1))
        np.testing.assert_allclose(total, 0.0, atol=TOLERANCE)
        assert np.ptp(responses.policy[responses.policy < 0]) > 1  # no uniform model, of which all would be true
        for beta in BETAS:
            check(responses, beta)


@given(st.integers(2, 4), st.integers(0, 10_000), st.sampled_from(BETAS))
def test_the_proposition_holds_for_tables(vocabulary, seed, beta):
    check(of_tables(vocabulary, seed), beta)


def test_the_first_prefix_is_worth_nothing_and_the_last_its_reward():
    responses = of_tables(3, 1)
    found = dict(zip([(n, tuple(rows)) for n, rows in responses.prefixes()], responses.forecasts(0.5), strict=True))
    assert found[(0, tuple(range(len(responses.tokens))))][1] == pytest.approx(0, abs=1e-12)
    rewards = 0.5 * (responses.policy - responses.reference).sum(1)
    for row, tokens in enumerate(responses.tokens):
        assert found[(len(tokens), (row,))][1] == pytest.approx(rewards[row], abs=1e-12)


def test_with_fixed_models_beta_is_a_unit_only():
    responses = of_tables(3, 2)
    first = np.array([q for q, *_ in responses.forecasts(0.05)]) / 0.05
    np.testing.assert_allclose(np.array([q for q, *_ in responses.forecasts(5.0)]) / 5.0, first, atol=1e-12)


def test_with_fixed_rewards_beta_leads_from_the_maximum_to_the_mean():
    """Hard and soft Monte-Carlo labels as the two ends: β → 0 gives max r, β → ∞ gives E r, and q falls in between."""
    responses = of_tables(3, 3)
    rewards = np.random.default_rng(0).normal(size=len(responses.tokens))
    rows = []
    for beta in (1e-4, 0.05, 0.5, 5.0, 1e4):
        values = np.array(list(responses.forecasts(beta, rewards)))
        rows.append(values[:, 1])
    mean, most = values[:, 2], values[:, 3]
    np.testing.assert_allclose(rows[0], most, atol=5e-3)
    np.testing.assert_allclose(rows[-1], mean, atol=1e-3)
    falls = -np.diff(rows, axis=0)
    assert (falls >= -1e-9).all()
    assert (falls[:, 0] > 0.01).all()  # before the first token, where all is open


def test_the_identity_needs_normalised_models():
    """The check itself can fail: half the probability taken from one token breaks every prefix before it."""
    responses = of_tables(3, 4)
    responses.policy[responses.tokens.index((1, END)), 1] -= np.log(2)
    with pytest.raises(AssertionError):
        check(responses, 0.5)
