"""Fine-tuning: what the loss is a mean of, what it does not depend on, and what training moves."""

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from tasks.lm.adapters import adapter_off, add_lora
from tasks.lm.tiny import build_model, build_tokenizer
from tasks.swiftcode import tuning
from tasks.swiftcode.examples import Example
from tasks.swiftcode.params import Finetune
from tasks.swiftcode.tuning import fit, mean_nll, plan

TOKENIZER = build_tokenizer([*"0123456789+="])
END = TOKENIZER.eos_token_id


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    torch.set_num_threads(1)


def start():
    return build_model(TOKENIZER, hidden=16, layers=2, heads=2, intermediate=32, seed=0)


def example(prompt: list[int], response: list[int]) -> Example:
    return Example("a", "python", prompt, response)


def toy(n: int = 12, seed: int = 0) -> list[Example]:
    """Prompts of several lengths that begin alike; responses of several lengths."""
    generator = np.random.default_rng(seed)
    return [
        example([1, 4, 5, *generator.integers(6, 12, 2 + i % 3).tolist()], [*[12] * (1 + i % 4), 4 + i % 2, END])
        for i in range(n)
    ]


def nll(model, one: Example) -> list[float]:
    """By the model's own logits, one example at a time, without padding."""
    with torch.no_grad():
        logits = model(torch.tensor([[*one.prompt, *one.response]])).logits[0].log_softmax(-1)
    return [-float(logits[len(one.prompt) - 1 + i, token]) for i, token in enumerate(one.response)]


# ---- the loss


@pytest.mark.parametrize("rows", [[0], [0, 1, 2, 3, 4], [3, 3]])
def test_the_loss_is_the_mean_over_all_response_tokens_of_the_batch(rows):
    model, examples = start(), [toy()[i] for i in rows]
    values = [value for one in examples for value in nll(model, one)]
    assert len(values) == sum(len(one.response) for one in examples)
    assert float(mean_nll(model, examples).detach()) == pytest.approx(np.mean(values), abs=1e-6)


def test_prompts_without_a_common_beginning_and_prompts_within_prompts():
    model = start()
    for prompts in ([[4, 5], [6, 7, 8]], [[4, 5], [4, 5, 6]], [[4], [4]], [[4, 5, 6], [4, 5, 6]]):
        examples = [example(p, [7 + i, END]) for i, p in enumerate(prompts)]
        values = [value for one in examples for value in nll(model, one)]
        assert float(mean_nll(model, examples).detach()) == pytest.approx(np.mean(values), abs=1e-6)


def test_another_architecture():
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_embd=16, n_layer=2, n_head=2, n_positions=64)).eval()
    values = [value for one in toy() for value in nll(model, one)]
    assert float(mean_nll(model, toy()).detach()) == pytest.approx(np.mean(values), abs=1e-6)


def test_the_gradient_is_that_of_the_plain_loss_on_responses_alone():
    """Labels of prompt tokens are ignored (-100), so a prompt's own tokens are no target."""
    model, examples = start(), toy(5)
    mean_nll(model, examples).backward()
    found = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    model.zero_grad()
    n = sum(len(one.response) for one in examples)
    for one in examples:
        labels = torch.tensor([[-100] * len(one.prompt) + one.response])
        loss = model(torch.tensor([[*one.prompt, *one.response]]), labels=labels).loss
        (loss * len(one.response) / n).backward()
    for name, weight in model.named_parameters():
        assert torch.allclose(found[name], weight.grad, atol=1e-6), name


def test_a_prompt_is_context_and_no_target():
    """With attention to nothing but the position itself, the prompt but for its last token says nothing."""
    model = start()
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.data.zero_()
    one, other = example([1, 4, 5, 9], [7, END]), example([1, 10, 11, 9], [7, END])
    assert float(mean_nll(model, [one]).detach()) == pytest.approx(float(mean_nll(model, [other]).detach()), abs=1e-7)
    assert nll(start(), one) != pytest.approx(nll(start(), other), abs=1e-4)


@pytest.mark.parametrize("elements", [1, 40])
def test_logits_in_pieces_give_the_same_value_and_gradient(monkeypatch, elements):
    model = start()
    mean_nll(model, toy()).backward()
    whole = model.model.embed_tokens.weight.grad.clone()
    value = float(mean_nll(model, toy()).detach())
    model.zero_grad()
    monkeypatch.setattr(tuning, "HEAD_ELEMENTS", elements)
    made = []
    model.lm_head.register_forward_hook(lambda module, inputs, output: made.append(output.numel()))
    loss = mean_nll(model, toy())
    loss.backward()
    assert max(made) <= max(elements, len(TOKENIZER))
    assert float(loss.detach()) == pytest.approx(value, abs=1e-6)
    assert torch.allclose(model.model.embed_tokens.weight.grad, whole, atol=1e-6)


# ---- training


def train(model, examples, **settings):
    parameters = Finetune(**({"epochs": 3, "batch": 4} | settings))
    batches = plan(list(map(len, examples)), parameters, np.random.default_rng(0))
    return list(fit(model, examples, batches, parameters))


def test_the_curve_begins_with_the_untrained_loss_and_falls():
    model, examples = start(), toy()
    steps = train(model, examples, epochs=20, learning_rate=1e-2)
    first = plan(list(map(len, examples)), Finetune(batch=4), np.random.default_rng(0))[0]
    values = [value for i in first for value in nll(start(), examples[i])]
    assert steps[0].loss == pytest.approx(np.mean(values), abs=1e-6)
    assert steps[-1].loss < steps[0].loss / 3
    assert [s.step for s in steps] == list(range(1, 61))
    assert max(s.learning_rate for s in steps) == pytest.approx(1e-2)
    assert steps[0].learning_rate < steps[1].learning_rate < 1.01e-2  # two steps of warm-up
    assert steps[-1].learning_rate < 1.2e-3
    assert all(s.gradient_norm > 0 for s in steps)


def test_the_end_is_learned():
    model, examples = start(), toy()
    before = np.mean([nll(model, one)[-1] for one in examples])
    train(model, examples, epochs=15, learning_rate=1e-2)
    assert np.mean([nll(model, one)[-1] for one in examples]) < before / 4


def test_adapters_alone_move():
    model = add_lora(start(), r=2, alpha=4.0, targets=["q_proj", "v_proj"], seed=1)
    steps = train(model, toy(), epochs=10, learning_rate=1e-2)
    assert steps[-1].loss < steps[0].loss
    ids = torch.tensor([[1, 4, 5, 12]])
    with torch.no_grad():
        plain = start()(ids).logits
        assert not torch.allclose(model(ids).logits, plain, atol=1e-3)
        with adapter_off(model):
            assert torch.equal(model(ids).logits, plain)


def test_the_same_bits_twice_and_whatever_the_global_generator_holds():
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        model = start()
        train(model.train(), toy())
        found.append(model.state_dict())
    for name in found[0]:
        assert torch.equal(found[0][name], found[1][name]), name


def test_dropout_is_off():
    found = []
    for seed in (1, 2):
        torch.manual_seed(0)
        model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_embd=16, n_layer=1, n_head=2, n_positions=32)).train()
        torch.manual_seed(seed)
        found.append(train(model, toy()))
    assert found[0] == found[1]


def test_a_loss_that_is_not_finite_ends_the_training():
    model = start()
    model.model.norm.weight.data.fill_(float("nan"))
    with pytest.raises(FloatingPointError, match="step 1"):
        train(model, toy())


# ---- batches


def test_every_epoch_takes_every_example_once_in_another_order():
    batches = plan(list(range(10)), Finetune(epochs=3, batch=4), np.random.default_rng(0))
    assert [len(b) for b in batches].count(2) == 3
    epochs = [np.concatenate(batches[i : i + 3]).tolist() for i in (0, 3, 6)]
    for epoch in epochs:
        assert sorted(epoch) == list(range(10))
    assert epochs[0] != epochs[1]


def test_similar_lengths_go_together():
    lengths = [5, 900, 7, 901, 6, 902]
    for batch in plan(lengths, Finetune(epochs=2, batch=3), np.random.default_rng(0)):
        assert len({lengths[i] > 100 for i in batch}) == 1
