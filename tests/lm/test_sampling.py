"""Samples have the model's distribution, end where they end, and do not depend on their company."""

import numpy as np
import pytest
import torch

from tasks.lm.logprobs import token_log_probs
from tasks.lm.sampling import choose, sample

OPTIONS = {"end": [2], "max_new_tokens": 6, "seed": 3}


def prompts_of(lengths):
    generator = np.random.default_rng(0)
    return [generator.integers(3, 20, n).tolist() for n in lengths]


def test_first_tokens_have_the_models_probabilities(tiny):
    prompt = [1, 5, 6]
    drawn = sample(tiny.model, [prompt], ["p"], 4000, **OPTIONS)[0]
    with torch.no_grad():
        expected = tiny.model(torch.tensor([prompt])).logits[0, -1].softmax(-1).numpy()
    counts = np.bincount([s.tokens[0] for s in drawn], minlength=len(expected))
    error = np.sqrt(4000 * expected * (1 - expected))
    assert (np.abs(counts - 4000 * expected) < 5 * error + 1).all()


def test_whole_responses_have_the_models_probabilities(tiny):
    """Mean −log p of samples = the entropy's unbiased estimate from another seed, within its error."""
    means = []
    for seed in (1, 2):
        drawn = sample(tiny.model, [[1, 5]], ["p"], 1500, end=[2], max_new_tokens=4, seed=seed)[0]
        values = token_log_probs(tiny.model, [[1, 5]] * 1500, [s.tokens for s in drawn])
        nll = np.array([-v.sum() for v in values])
        means.append((nll.mean(), nll.std() / np.sqrt(1500)))
    assert abs(means[0][0] - means[1][0]) < 5 * np.hypot(means[0][1], means[1][1])
    # a uniform sampler would find about 4 × log 21 nats of surprise or more
    assert means[0][0] < 4 * np.log(21)


def test_a_response_ends_with_the_first_end_token_or_is_unfinished(tiny):
    drawn = sample(tiny.model, [[1, 5]], ["p"], 400, end=[2, 7], max_new_tokens=12, seed=0)[0]
    assert any(s.finished for s in drawn)
    assert any(not s.finished for s in drawn)
    for one in drawn:
        ends = [i for i, token in enumerate(one.tokens) if token in (2, 7)]
        if one.finished:
            assert ends == [len(one.tokens) - 1]
        else:
            assert not ends
            assert len(one.tokens) == 12


@pytest.mark.parametrize("batch", [1, 7, 1024])
def test_what_is_drawn_depends_on_the_problem_alone(tiny, batch):
    prompts, keys = prompts_of([3, 5, 5, 9, 1]), list("abcde")
    whole = sample(tiny.model, prompts, keys, 5, **OPTIONS)
    order = [3, 0, 4, 2, 1]
    other = sample(tiny.model, [prompts[i] for i in order], [keys[i] for i in order], 5, batch=batch, **OPTIONS)
    for place, i in enumerate(order):
        assert other[place] == whole[i]
    alone = sample(tiny.model, prompts[3:4], keys[3:4], 5, batch=batch, **OPTIONS)
    assert alone[0] == whole[3]


def test_more_samples_keep_the_first_ones_and_other_seeds_draw_others(tiny):
    prompts = prompts_of([4])
    few = sample(tiny.model, prompts, ["a"], 3, **OPTIONS)[0]
    many = sample(tiny.model, prompts, ["a"], 9, **OPTIONS)[0]
    assert many[:3] == few
    assert sample(tiny.model, prompts, ["a"], 9, **{**OPTIONS, "seed": 4})[0] != many


def test_temperature_near_zero_is_greedy_decoding(tiny):
    prompts = prompts_of([4, 6])
    drawn = sample(tiny.model, prompts, ["a", "b"], 2, temperature=1e-4, **OPTIONS)
    for prompt, samples in zip(prompts, drawn, strict=True):
        ids = torch.tensor([prompt])
        with torch.no_grad():
            greedy = tiny.model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False, pad_token_id=0
            )
        expected = greedy[0, len(prompt) :].tolist()
        for one in samples:
            assert one.tokens == expected[: len(one.tokens)]
            assert len(one.tokens) == 6 or one.finished


def test_temperature_zero_is_that_of_generate_without_sampling_whatever_the_seed(tiny):
    prompts = prompts_of([4, 6])
    drawn = [sample(tiny.model, prompts, ["a", "b"], 1, **{**OPTIONS, "seed": s}, temperature=0.0) for s in (1, 2)]
    assert drawn[0] == drawn[1] == sample(tiny.model, prompts, ["a", "b"], 1, temperature=1e-4, **OPTIONS)


def test_top_k_samples_have_the_probabilities_of_the_k_most_probable_tokens(tiny):
    prompt, k = [1, 5, 6], 3
    drawn = sample(tiny.model, [prompt], ["p"], 3000, top_k=k, temperature=0.5, **OPTIONS)[0]
    with torch.no_grad():
        highest, ids = (tiny.model(torch.tensor([prompt])).logits[0, -1] / 0.5).topk(k)
    expected = np.zeros(tiny.model.config.vocab_size)
    expected[ids.numpy()] = highest.softmax(-1).numpy()
    counts = np.bincount([s.tokens[0] for s in drawn], minlength=len(expected))
    assert (np.abs(counts - 3000 * expected) <= 5 * np.sqrt(3000 * expected * (1 - expected))).all()
    whole = sample(tiny.model, [prompt], ["p"], 20, **OPTIONS)
    assert sample(tiny.model, [prompt], ["p"], 20, top_k=10**6, **OPTIONS) == whole, "more than there are: all of them"


def test_positions_of_prompts_that_are_padded_are_those_of_the_prompt_alone():
    """A model whose positions matter much, prompts of unlike lengths in one batch: greedy, beside generate()."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_embd=16, n_layer=2, n_head=2, n_positions=64)).eval()
    model.transformer.wpe.weight.data.normal_(generator=torch.Generator().manual_seed(1))
    prompts = prompts_of([2, 9, 5, 14])
    drawn = sample(model, prompts, list("abcd"), 1, temperature=1e-4, end=[99], max_new_tokens=8, seed=0)
    for prompt, (one,) in zip(prompts, drawn, strict=True):
        ids = torch.tensor([prompt])
        with torch.no_grad():
            greedy = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=8,
                do_sample=False,
                pad_token_id=0,
                eos_token_id=99,
            )
        assert one.tokens == greedy[0, len(prompt) :].tolist()


def test_inverse_of_the_distribution_function_by_hand():
    logits = torch.log(torch.tensor([[0.5, 0.0, 0.3, 0.2]])).repeat(5, 1)
    uniform = torch.tensor([0.0, 0.499, 0.5, 0.81, 0.9999999])
    assert choose(logits, uniform).tolist() == [0, 0, 2, 3, 3]
    # the nucleus of .7 is {0, 2}: .5 and .3 of .8
    assert choose(logits, uniform, top_p=0.7).tolist() == [0, 0, 0, 2, 2]
    assert choose(logits, torch.full((5,), 0.99), top_p=0.1).tolist() == [0] * 5
    # of the two most probable {0, 2} with .625 and .375; the nucleus is that of what top_k has left
    assert choose(logits, torch.tensor([0.0, 0.62, 0.63, 0.81, 0.9999999]), top_k=2).tolist() == [0, 0, 2, 2, 2]
    assert choose(logits, uniform, top_k=2, top_p=0.6).tolist() == [0] * 5
    assert choose(logits, uniform, top_k=3, top_p=0.7).tolist() == [0, 0, 0, 2, 2]
    # temperature 0: the first of equals
    assert choose(torch.tensor([[1.0, 3.0, 3.0]]), torch.tensor([0.99]), 0.0).tolist() == [1]


def test_bad_arguments_are_named(tiny):
    with pytest.raises(ValueError, match="as many different keys"):
        sample(tiny.model, [[1], [1]], ["a", "a"], 1, **OPTIONS)
    with pytest.raises(ValueError, match="prompt 'a' has no token"):
        sample(tiny.model, [[]], ["a"], 1, **OPTIONS)
