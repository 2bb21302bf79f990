"""Adapters: what is trained, what stays, and that the model without them is the reference to the last bit."""

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model

from tasks.lm.adapters import adapter_off, add_lora, require_adapter_only
from tasks.lm.loading import LanguageModel, digest, load, save
from tasks.lm.logprobs import response_log_probs, token_log_probs
from tasks.stage import UserError

PROMPTS = [[1, 8, 18, 9], [1, 10, 18, 8, 18, 9], [1, 8, 18, 9]]
RESPONSES = [[6, 8, 18, 9, 20, 10, 4, 2], [6, 2], [7, 9, 20, 11, 2]]


def lora(model, **changes):
    return add_lora(model, **{"r": 2, "alpha": 4.0, "targets": "all-linear", "seed": 3, **changes})


def take_steps(model, n: int) -> None:
    optimiser = torch.optim.AdamW([w for w in model.parameters() if w.requires_grad], lr=0.02, weight_decay=0.1)
    model.train()
    for _ in range(n):
        optimiser.zero_grad()
        response_log_probs(model, PROMPTS, RESPONSES).sum().neg().backward()
        optimiser.step()


def equal(first: list[np.ndarray], second: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.fixture
def base_log_probs(tiny):
    return token_log_probs(tiny.model, PROMPTS, RESPONSES)


@pytest.mark.parametrize("targets", ["all-linear", ["q_proj", "down_proj"], ["lm_head", "embed_tokens", "v_proj"]])
def test_the_model_without_adapters_is_the_reference_bit_for_bit_before_and_after_training(
    tiny, base_log_probs, targets
):
    model = lora(tiny.model, targets=targets)
    require_adapter_only(model)
    assert equal(token_log_probs(model, PROMPTS, RESPONSES), base_log_probs), "B is zero: nothing has changed yet"
    for steps in (0, 5):
        take_steps(model, steps)
        with adapter_off(model):
            assert equal(token_log_probs(model, PROMPTS, RESPONSES), base_log_probs)
        require_adapter_only(model)
    after = token_log_probs(model, PROMPTS, RESPONSES)
    assert sum(a.sum() for a in after) > sum(b.sum() for b in base_log_probs) + 0.1, "the adapters have learned"


def test_training_moves_all_adapters_and_no_other_weight(tiny):
    model = lora(tiny.model)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    take_steps(model, 2)
    moved = {name for name, weight in model.state_dict().items() if not torch.equal(weight, before[name])}
    assert moved == {name for name in before if ".lora_A." in name or ".lora_B." in name}
    assert len(moved) == 2 * 14


def test_the_start_is_drawn_from_the_seed_alone(tiny):
    folders = []
    torch.manual_seed(11)
    state = torch.random.get_rng_state()
    for seed, targets in ((1, ["q_proj", "o_proj"]), (1, ["o_proj", "q_proj"]), (2, ["q_proj", "o_proj"])):
        torch.manual_seed(11)
        model = type(tiny.model)(tiny.model.config)
        model.load_state_dict(tiny.model.state_dict())
        torch.random.set_rng_state(state)
        folders.append(digest(lora(model, seed=seed, targets=targets)))
        assert torch.equal(torch.random.get_rng_state(), state), "the caller's stream of random numbers goes on"
    assert folders[0] == folders[1] != folders[2]


def test_alpha_over_r_is_the_scale(tiny, base_log_probs):
    model = lora(tiny.model, r=2, alpha=6.0, targets=["lm_head"])
    layer = model.get_base_model().lm_head
    with torch.no_grad():
        layer.lora_B["default"].weight.fill_(0.5)
        x = torch.randn(16, generator=torch.Generator().manual_seed(0))
        a, b = layer.lora_A["default"].weight, layer.lora_B["default"].weight
        assert torch.allclose(layer(x) - layer.base_layer(x), 3.0 * (b @ (a @ x)), atol=1e-6)
    assert a.shape == (2, 16)


def test_what_is_trainable_is_afterwards_as_before_also_after_a_fault(tiny):
    model = lora(tiny.model)
    model.get_submodule("base_model.model.model.norm").weight.requires_grad_(True)
    wanted = {name: weight.requires_grad for name, weight in model.named_parameters()}
    assert len(set(wanted.values())) == 2
    with pytest.raises(KeyError), adapter_off(model):
        raise KeyError
    assert {name: weight.requires_grad for name, weight in model.named_parameters()} == wanted
    take_steps(model, 1)
    on = token_log_probs(model, PROMPTS, RESPONSES)
    with adapter_off(model):
        assert not equal(on, token_log_probs(model, PROMPTS, RESPONSES)), "the adapters are on again"


def test_an_adapter_that_was_read_for_scoring_stays_frozen(tiny, tmp_path):
    save(tiny, tmp_path / "base")
    save(LanguageModel(lora(load(tmp_path / "base").model), tiny.tokenizer, ""), tmp_path / "adapter")
    model = load(tmp_path / "adapter", base=tmp_path / "base").model
    with adapter_off(model):
        pass
    assert not any(weight.requires_grad for name, weight in model.named_parameters() if "lora_" in name)


def test_a_whole_model_has_no_adapter_to_put_off(tiny):
    with pytest.raises(ValueError, match="has no adapter"), adapter_off(tiny.model):
        pass


def test_adapters_on_adapters_are_refused(tiny):
    """With adapters off, the reference would be the base of the first, not what the training started from."""
    model = lora(tiny.model)
    with pytest.raises(UserError, match=r"has an adapter already; train from a whole model$"):
        lora(model)


@pytest.mark.parametrize("targets", [["q_proj", "query"], ["proj"], "query.*"])
def test_targets_that_the_model_lacks_are_told(tiny, targets):
    """peft itself ignores a name that fits nothing, as long as another fits."""
    with pytest.raises(UserError, match=r"^targets: '(query|proj|query\.\*)'[^\n]+$"):
        lora(tiny.model, targets=targets)


def unfrozen(part: str):
    def make(model):
        model = lora(model)
        model.get_submodule(f"base_model.model.{part}").weight.requires_grad_(True)
        return model

    return make


def of_peft(**options):
    return lambda model: get_peft_model(
        model, LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=1, **options)
    )


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (unfrozen("model.embed_tokens"), "base_model.model.model.embed_tokens.weight"),
        (unfrozen("model.layers.1.input_layernorm"), "base_model.model.model.layers.1.input_layernorm.weight"),
        (of_peft(modules_to_save=["lm_head"]), "base_model.model.lm_head.modules_to_save.default.weight"),
        (of_peft(trainable_token_indices=[4]), r"\S*embed_tokens\S*trainable_tokens_delta\S*"),
        (lambda model: model, "model.embed_tokens.weight"),
    ],
)
def test_trainable_weights_that_are_no_adapters_are_named(tiny, make, name):
    with pytest.raises(UserError, match=f"^{name}: is trainable and no adapter's"):
        require_adapter_only(make(tiny.model))


def test_a_model_without_trainable_weights_is_told(tiny):
    model = lora(tiny.model)
    for weight in model.parameters():
        weight.requires_grad_(False)
    with pytest.raises(UserError, match=r"^the model has no trainable weight"):
        require_adapter_only(model)
