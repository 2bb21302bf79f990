"""Log-probabilities against the whole table of logits, in every order, batch and length."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import GPT2Config, GPT2LMHeadModel

from tasks.lm import logprobs
from tasks.lm.logprobs import response_log_probs, segment_sum, token_log_probs
from tests.bench.measure import memory_mb, reset_peak


def plain(model, prompt, response):
    """From the logits of the whole sequence."""
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *response]])).logits[0].log_softmax(-1)
    return np.array([logits[len(prompt) - 1 + i, token] for i, token in enumerate(response)], dtype=np.float32)


def ids(generator, least, most):
    return generator.integers(3, 20, generator.integers(least, most + 1)).tolist()


@pytest.fixture
def ragged():
    generator = np.random.default_rng(0)
    prompts = [ids(generator, 1, 9) for _ in range(12)]
    prompts += prompts[:6]  # several responses a prompt
    return prompts, [ids(generator, 0, 20) for _ in prompts]


@pytest.mark.parametrize("batch_tokens", [1, 64, 100_000])
def test_every_batching_gives_the_plain_result(tiny, ragged, batch_tokens):
    found = token_log_probs(tiny.model, *ragged, batch_tokens=batch_tokens)
    for prompt, response, values in zip(*ragged, found, strict=True):
        assert values.dtype == np.float32
        assert len(values) == len(response)
        np.testing.assert_allclose(values, plain(tiny.model, prompt, response), atol=2e-6)


def test_another_architecture(ragged):
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_embd=16, n_layer=2, n_head=2, n_positions=64)).eval()
    for prompt, response, values in zip(*ragged, token_log_probs(model, *ragged), strict=True):
        np.testing.assert_allclose(values, plain(model, prompt, response), atol=2e-6)


def test_scoring_ignores_dropout_and_gives_the_same_bits_twice(ragged):
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=20, n_embd=16, n_layer=2, n_head=2, n_positions=64, resid_pdrop=0.5, embd_pdrop=0.5)
    model = GPT2LMHeadModel(config).train()
    first, second = token_log_probs(model, *ragged), token_log_probs(model, *ragged)
    assert model.training
    for a, b in zip(first, second, strict=True):
        assert a.tobytes() == b.tobytes()


def test_the_end_token_carries_its_log_probability_where_pad_is_the_end(pad_is_end):
    end = pad_is_end.tokenizer.eos_token_id
    short, long = [5, end], [5, 6, 7, 8, end]
    found = token_log_probs(pad_is_end.model, [[1, 4]] * 2, [short, long])
    np.testing.assert_allclose(found[0], plain(pad_is_end.model, [1, 4], short), atol=2e-6)
    assert len(found[0]) == 2


def test_end_tokens_within_the_prompt_are_attended_to(pad_is_end):
    end = pad_is_end.tokenizer.eos_token_id
    with_end, without = token_log_probs(pad_is_end.model, [[1, end, 4], [1, 9, 4]], [[5], [5]])
    assert with_end[0] != without[0]
    np.testing.assert_allclose(with_end, plain(pad_is_end.model, [1, end, 4], [5]), atol=2e-6)


def test_with_gradient_the_same_values(tiny, ragged):
    values = response_log_probs(tiny.model, *ragged)
    expected = np.concatenate(token_log_probs(tiny.model, *ragged))
    np.testing.assert_allclose(values.detach(), expected, atol=2e-6)
    totals = segment_sum(values, [len(r) for r in ragged[1]]).detach().numpy()
    np.testing.assert_allclose(totals, [v.sum() for v in token_log_probs(tiny.model, *ragged)], atol=2e-5)


def test_the_gradient_is_that_of_the_whole_table(tiny, ragged, monkeypatch):
    def gradient(pieces):
        monkeypatch.setattr(logprobs, "HEAD_ELEMENTS", pieces)
        tiny.model.zero_grad()
        response_log_probs(tiny.model, *ragged).sum().backward()
        return tiny.model.model.embed_tokens.weight.grad.clone()

    whole, in_pieces = gradient(1 << 24), gradient(64)
    tiny.model.zero_grad()
    total = 0.0
    for prompt, response in zip(*ragged, strict=True):
        if response:
            logits = tiny.model(torch.tensor([[*prompt, *response]])).logits[0].log_softmax(-1)
            total = total + sum(logits[len(prompt) - 1 + i, t] for i, t in enumerate(response))
    total.backward()
    plain_gradient = tiny.model.model.embed_tokens.weight.grad
    torch.testing.assert_close(whole, plain_gradient, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(in_pieces, plain_gradient, atol=1e-4, rtol=1e-4)


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(18)))
def test_the_order_of_responses_changes_nothing(order):
    from tasks.lm.tiny import build_model, build_tokenizer

    model = build_model(build_tokenizer([*"abcdefghijklmnop"]), hidden=16, layers=1, heads=2, intermediate=16, seed=0)
    generator = np.random.default_rng(1)
    prompts = [ids(generator, 1, 4) for _ in range(6)] * 3
    responses = [ids(generator, 1, 8) for _ in prompts]
    first = token_log_probs(model, prompts, responses)
    other = token_log_probs(model, [prompts[i] for i in order], [responses[i] for i in order])
    for place, i in enumerate(order):
        np.testing.assert_allclose(other[place], first[i], atol=1e-6)


def test_bad_arguments_are_named(tiny):
    with pytest.raises(ValueError, match="prompt 1 has no token"):
        token_log_probs(tiny.model, [[1], []], [[4], [4]])
    with pytest.raises(ValueError, match="2 prompts and 1 responses"):
        response_log_probs(tiny.model, [[1], [1]], [[4]])
    assert token_log_probs(tiny.model, [], []) == []
    with pytest.raises(ValueError, match=r"response 0 have 510 \+ 3 tokens; the model takes 512"):
        token_log_probs(tiny.model, [[5] * 510], [[5] * 3])
    assert len(response_log_probs(tiny.model, [[1]], [[]])) == 0


def test_models_whose_logits_go_through_more_than_the_head_are_refused(tiny):
    tiny.model.config.final_logit_softcapping = 30.0
    with pytest.raises(ValueError, match="final_logit_softcapping"):
        token_log_probs(tiny.model, [[1]], [[4]])


def test_a_large_vocabulary_stays_within_bounded_memory():
    """49 152 words × 32 responses × 256 tokens: the logits alone would be 1.6 GB."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=49_152,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    model = LlamaForCausalLM(config)
    prompts, responses = [[1, 2, 3]] * 32, [[5] * 256] * 32
    before = memory_mb("VmRSS")
    reset_peak()
    token_log_probs(model, prompts, responses)
    assert memory_mb("VmHWM") - before < 1000
    response_log_probs(model, prompts, responses).sum().backward()
    assert memory_mb("VmHWM") - before < 1000
