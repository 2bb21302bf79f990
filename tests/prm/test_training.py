"""Training on outcome labels: where it starts, what it moves, which rows and which order it may depend on."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from tasks.lm.adapters import adapter_off, add_lora
from tasks.lm.logprobs import token_log_probs
from tasks.lm.tiny import build_model, build_tokenizer
from tasks.prm import losses
from tasks.prm.dataset import Rollouts
from tasks.prm.params import LOSSES, Train
from tasks.prm.training import Batch, Labelled, choose_beta, counts, fit, labelled, plan

TOKENIZER = build_tokenizer([*"0123456789+="])
SHAPE = {"hidden": 16, "layers": 1, "heads": 2, "intermediate": 32}


def start():
    return build_model(TOKENIZER, seed=0, **SHAPE)


def toy(n_problems: int = 8, samples: int = 4, model=None) -> Labelled:
    """Right responses end with 4, wrong ones with 5."""
    rows = [(f"p{i:02}", j) for i in range(n_problems) for j in range(samples)]
    prompts = [[1, 4 + i % 7, 5] for i in range(n_problems) for _ in range(samples)]
    responses = [[6] * (1 + j % 3) + [8 + j % 2, 2] for _, j in rows]
    correct = np.array([j % 2 == 0 for _, j in rows])
    reference = token_log_probs(model or start(), prompts, responses)
    return Labelled(np.array([p for p, _ in rows], dtype=object), prompts, responses, correct, reference)


def run(model, loss, data, parameters, seed=0, beta=1.0):
    frozen = start()
    generator = np.random.default_rng(seed)
    batches = plan(loss, data, parameters, generator)
    return list(fit(model, loss, data, batches, beta, parameters, lambda p, r: token_log_probs(frozen, p, r)))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_loss_starts_where_nothing_is_known_and_falls(loss):
    model = start()
    data = toy()
    steps = run(model, loss, data, Train(batch=16, epochs=10, learning_rate=5e-3))
    first = {"ce": np.log(2), "dpo": np.log(2), "nca": 2 * np.log(2), "kto": 0.5}[loss]
    assert steps[0].loss == pytest.approx(first, abs=1e-4)
    assert steps[-1].loss < first - 0.1
    assert steps[-1].reward_correct > steps[-1].reward_wrong + 0.3
    assert [s.step for s in steps] == list(range(1, len(steps) + 1))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_bits_twice_and_whatever_the_global_generator_holds(loss):
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        model = start()
        run(model, loss, toy(), Train(batch=8))
        found.append(model.state_dict())
    for name in found[0]:
        assert torch.equal(found[0][name], found[1][name]), name


def test_the_table_may_lie_in_any_order():
    model = start()
    data = toy()
    table = pd.DataFrame(
        {"problem": data.problems, "sample": [0, 1, 2, 3] * 8, "split": "train", "correct": data.correct}
    )
    whole = Rollouts(table, data.prompts, data.responses)
    order = np.random.default_rng(0).permutation(len(table))
    shuffled = labelled(whole.part(order), [data.reference[i] for i in order], "train")
    assert shuffled.problems.tolist() == data.problems.tolist()
    assert shuffled.responses == data.responses
    run(model, "ce", shuffled, Train(batch=8))
    other = start()
    run(other, "ce", labelled(whole, data.reference, "train"), Train(batch=8))
    assert torch.equal(model.lm_head.weight, other.lm_head.weight)


def test_other_splits_and_empty_responses_are_left_out():
    data = toy(2)
    responses = [[], *data.responses[1:]]
    table = pd.DataFrame(
        {"problem": data.problems, "sample": [0, 1, 2, 3] * 2, "split": ["train"] * 6 + ["test"] * 2}
    ).assign(correct=data.correct, response="x")
    found = labelled(Rollouts(table, data.prompts, responses), data.reference, "train")
    assert found.responses == data.responses[1:6]
    counted = counts(Rollouts(table, data.prompts, responses), "train", found, plan("ce", found, Train(), RNG()))
    assert (counted["responses"], counted["empty"], counted["used"], counted["steps"]) == (6, 1, 5, 1)
    assert counted["problems"] == 2


def RNG():
    return np.random.default_rng(0)


def test_a_reference_that_the_model_did_not_start_from_is_refused():
    data = toy(model=build_model(TOKENIZER, seed=1, **SHAPE))
    for loss in LOSSES:
        with pytest.raises(ValueError, match="not what the model starts as"):
            run(start(), loss, data, Train())
    half = toy()
    rounded = Labelled(
        half.problems,
        half.prompts,
        half.responses,
        half.correct,
        [r.astype(np.float16).astype(np.float32) for r in half.reference],
    )
    with pytest.raises(ValueError, match="not what the model starts as"):
        run(start(), "ce", rounded, Train())


def test_a_model_with_dropout_starts_from_itself_too():
    from transformers import GPT2Config, GPT2LMHeadModel

    def model():
        torch.manual_seed(0)
        return GPT2LMHeadModel(GPT2Config(vocab_size=20, n_embd=16, n_layer=1, n_head=2, n_positions=32)).train()

    data = toy(model=model())
    assert run(model(), "ce", data, Train())[0].loss == pytest.approx(np.log(2), abs=1e-4)


def test_pairs_of_shared_responses_have_the_gradient_of_each_pair_by_itself():
    data = toy(2)
    parameters = Train(max_pairs=4)
    (batch,) = plan("dpo", data, parameters, RNG())
    assert len(batch.chosen) == 8
    assert len(batch.rows) == 8  # 2 correct and 2 wrong ones of each problem, each once
    model = start()
    model.zero_grad()
    total = 0.0
    for c, r in zip(batch.rows[batch.chosen], batch.rows[batch.rejected], strict=True):
        assert data.correct[c]
        assert not data.correct[r]
        assert data.problems[c] == data.problems[r]
        h = []
        for i in (c, r):
            logits = model(torch.tensor([[*data.prompts[i], *data.responses[i]]])).logits[0].log_softmax(-1)
            at = [logits[len(data.prompts[i]) - 1 + k, t] for k, t in enumerate(data.responses[i])]
            h.append(sum(at) - float(data.reference[i].sum()))
        total = total + losses.dpo(h[0][None], h[1][None]) / len(batch.chosen)
    total.backward()
    expected = model.lm_head.weight.grad.clone()
    seen = []
    other = start()
    other.lm_head.weight.register_hook(lambda g: seen.append(g.clone()))
    list(fit(other, "dpo", data, [batch], 1.0, parameters))
    torch.testing.assert_close(sum(seen), expected, atol=1e-5, rtol=1e-4)


def test_pair_losses_skip_problems_of_one_class_and_the_others_keep_them():
    data = toy(4)
    correct = data.correct.copy()
    correct[:4] = True
    data = Labelled(data.problems, data.prompts, data.responses, correct, data.reference)
    rows = np.concatenate([batch.rows for batch in plan("dpo", data, Train(), RNG())])
    assert set(data.problems[rows]) == {"p01", "p02", "p03"}
    rows = np.concatenate([batch.rows for batch in plan("ce", data, Train(), RNG())])
    assert sorted(rows) == list(range(16))
    only = Labelled(
        data.problems[:8], *(x[:8] for x in (data.prompts, data.responses)), np.arange(8) < 4, data.reference[:8]
    )
    with pytest.raises(ValueError, match="no problem has both a correct and a wrong response"):
        plan("nca", only, Train(), RNG())
    with pytest.raises(ValueError, match="4 of 4 responses are correct"):
        plan("ce", only_first(only), Train(), RNG())


def only_first(data: Labelled) -> Labelled:
    return Labelled(data.problems[:4], data.prompts[:4], data.responses[:4], data.correct[:4], data.reference[:4])


def test_kto_takes_batches_of_one_problem():
    data = toy(1, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        steps = run(start(), "kto", data, Train(batch=4, epochs=2))
    assert all(np.isfinite([s.loss, s.gradient_norm]).all() for s in steps)
    assert steps[0].loss == pytest.approx(0.5, abs=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert len(run(start(), "kto", toy(9, 2), Train(batch=17))) == 2  # the last batch holds one response


def test_responses_that_are_cut_lose_their_end_and_count_as_wrong():
    data = toy(2)
    cut, number = data.cut(3)
    long = [len(r) > 3 for r in data.responses]
    assert number == sum(long) > 0
    assert all(len(r) <= 3 for r in cut.responses)
    assert [len(r) for r in cut.reference] == [len(r) for r in cut.responses]
    assert not cut.correct[long].any()
    assert (cut.correct[~np.array(long)] == data.correct[~np.array(long)]).all()


def test_an_adapter_moves_and_the_model_under_it_does_not():
    before = token_log_probs(start(), toy().prompts, toy().responses)
    model = add_lora(start(), r=2, alpha=4, targets="all-linear", seed=0)
    data = toy()
    for loss in LOSSES:
        frozen = {n: w.clone() for n, w in model.named_parameters() if "lora" not in n}
        steps = list(
            fit(
                model,
                loss,
                Labelled(data.problems, data.prompts, data.responses, data.correct, _now(model, data)),
                plan(loss, data, Train(batch=8), RNG()),
                1.0,
                Train(batch=8, learning_rate=0.01),
                lambda p, r: _off(model, p, r),
            )
        )
        assert steps[0].gradient_norm > 0
        for name, weight in model.named_parameters():
            if "lora" not in name:
                assert torch.equal(weight, frozen[name]), name
    with adapter_off(model):
        for a, b in zip(token_log_probs(model, data.prompts, data.responses), before, strict=True):
            np.testing.assert_array_equal(a, b)
    assert np.abs(token_log_probs(model, data.prompts, data.responses)[0] - before[0]).max() > 1e-3


def _now(model, data):
    return token_log_probs(model, data.prompts, data.responses)


def _off(model, prompts, responses):
    with adapter_off(model):
        return token_log_probs(model, prompts, responses)


def test_beta_auto_is_one_over_the_nll_of_correct_responses_within_bounds():
    data = toy()
    nll = np.mean([-r.sum() for r, c in zip(data.reference, data.correct, strict=True) if c])
    assert choose_beta("auto", data) == pytest.approx(1 / nll, rel=1e-6)
    sure = Labelled(data.problems, data.prompts, data.responses, data.correct, [r / 1e4 for r in data.reference])
    with pytest.warns(UserWarning, match="bounded by it"):
        assert choose_beta("auto", sure) == 5.0
    with pytest.warns(UserWarning, match=r"beta 0.01 × .* nats"):
        assert choose_beta(0.01, data) == 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_beta(1.0, data) == 1.0


def test_a_learning_rate_without_bounds_ends_in_an_error_and_not_in_weights():
    with pytest.raises(FloatingPointError, match="a smaller learning rate may help"):
        run(start(), "ce", toy(), Train(batch=8, epochs=200, learning_rate=1.0), beta=1e30)


def test_batches_of_pairs_have_about_the_size_that_is_asked_for():
    sizes = [len(batch.rows) for batch in plan("dpo", toy(40), Train(batch=16), RNG())]
    assert max(sizes) <= 16
    assert np.mean(sizes) > 10
    assert isinstance(plan("ce", toy(), Train(), RNG())[0], Batch)
