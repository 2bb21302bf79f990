"""score_steps: partitions, sums, batches, references in every form, adapters by peft and by TRL."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.lm.adapters import add_lora
from tasks.lm.loading import LanguageModel, save
from tasks.lm.logprobs import token_log_probs
from tasks.lm.tiny import build_model, build_tokenizer
from tasks.lm.tokens import encode_prompt, encode_response
from tasks.prm.params import AGGREGATIONS
from tasks.prm.score import score_steps

SYMBOLS = ["Q:", "Step 1:", "Step 2:", "\n", "\n\n", "\r\n", *"0123456789+=abc é🙂"]
SHAPE = {"hidden": 16, "layers": 2, "heads": 2, "intermediate": 32}
PROMPTS = ["Q:1+2\n", "Q:1+2\n", "Q:34\n", "Q:5+6+7\n"]
RESPONSES = ["Step 1:1+2=3\n\n3", "3", "Step 1:3\n\nStep 2:4", "5\n\n\n6"]


def fresh(seed: int) -> LanguageModel:
    tokenizer = build_tokenizer(SYMBOLS)
    return LanguageModel(build_model(tokenizer, seed=seed, **SHAPE), tokenizer, "")


@pytest.fixture(scope="module")
def policy() -> LanguageModel:
    return fresh(1)


@pytest.fixture(scope="module")
def other() -> LanguageModel:
    return fresh(2)


def moved(seed: int = 0) -> LanguageModel:
    """A model with an adapter that does something."""
    start = fresh(1)
    model = add_lora(start.model, r=2, alpha=4, targets="all-linear", seed=0)
    generator = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            weight.data.copy_(0.3 * torch.randn(weight.shape, generator=generator))
    return LanguageModel(model.eval(), start.tokenizer, "")


def test_rewards_are_beta_times_log_ratios_by_hand(policy, other):
    scored = score_steps(PROMPTS, RESPONSES, policy, other, beta=0.5)
    for prompt, response, one in zip(PROMPTS, RESPONSES, scored, strict=True):
        ids = encode_prompt(policy.tokenizer, prompt), encode_response(policy.tokenizer, response)
        ours, theirs = (token_log_probs(m.model, [ids[0]], [ids[1]])[0] for m in (policy, other))
        np.testing.assert_allclose(one.token_rewards, 0.5 * (ours - theirs), atol=1e-5)
        assert one.scores["sum"] == pytest.approx(0.5 * float((ours - theirs).sum()), abs=1e-4)
        assert one.finished
    first = scored[0]
    assert [(s.start_char, s.end_char) for s in first.steps] == [(0, 14), (14, 15)]
    assert first.steps[-1].prefix_value == pytest.approx(first.scores["sum"], abs=1e-5)
    assert first.scores["min"] == min(s.reward for s in first.steps)
    assert first.scores["prefix_min"] == min(s.prefix_value for s in first.steps)
    assert set(first.scores) == set(AGGREGATIONS)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from([*SYMBOLS, "Step 12:", "<eos>", "\n \n"]), st.text(max_size=5)), max_size=12),
    st.sampled_from(["blank_line", "step_marker", "newline", "token"]),
    st.booleans(),
)
def test_steps_partition_every_response_and_rewards_add_up(policy, parts, rule, finished):
    text = "".join(parts)
    (one,) = score_steps(["Q:1\n"], [text], policy, beta=2.0, segment=rule, finished=finished)
    assert [s.start_char for s in one.steps] == [0, *(s.end_char for s in one.steps[:-1])]
    assert one.steps[-1].end_char == len(text)
    assert [s.start_token for s in one.steps] == [0, *(s.end_token for s in one.steps[:-1])]
    assert one.steps[-1].end_token == len(one.token_rewards)
    total = float(one.token_rewards.sum(dtype=np.float64))
    assert sum(s.reward for s in one.steps) == pytest.approx(total, abs=1e-4)
    if len(one.token_rewards):
        assert one.scores["sum"] == pytest.approx(total, abs=1e-4)


def test_a_response_without_any_token_loses(policy):
    empty, done = score_steps(["Q:1\n"] * 2, ["", ""], policy, beta=1.0, finished=[False, True])
    assert len(empty.steps) == 1
    assert all(np.isnan(value) for value in empty.scores.values())
    assert done.scores["min"] < 0


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_batch_gives_what_each_response_gets_alone(policy, other, side):
    for model in (policy, other):
        model.tokenizer.padding_side = side
    prompts = [f"Q:{'1+' * n}1\n" for n in range(12)]
    responses = [f"Step 1:{'2+' * (n % 5)}=1\n\n{n}" for n in range(12)]
    together = score_steps(prompts, responses, policy, other, beta=1.0)
    for i in range(12):
        (alone,) = score_steps(prompts[i : i + 1], responses[i : i + 1], policy, other, beta=1.0)
        np.testing.assert_allclose(together[i].token_rewards, alone.token_rewards, atol=1e-4)
        assert [s[:4] for s in map(_spans, together[i].steps)] == [s[:4] for s in map(_spans, alone.steps)]


def _spans(step):
    return step.start_char, step.end_char, step.start_token, step.end_token


def test_pad_may_be_the_end_token(policy):
    plain = score_steps(PROMPTS, RESPONSES, policy, beta=1.0)
    same = fresh(1)
    same.tokenizer.pad_token = same.tokenizer.eos_token
    for a, b in zip(plain, score_steps(PROMPTS, RESPONSES, same, beta=1.0), strict=True):
        np.testing.assert_array_equal(a.token_rewards, b.token_rewards)
        assert len(a.token_rewards) == len(encode_response(same.tokenizer, RESPONSES[0])) or a is not plain[0]


def test_every_form_of_a_model_gives_the_same_rewards(policy, other, tmp_path):
    save(policy, tmp_path / "policy")
    save(other, tmp_path / "other")
    expected = score_steps(PROMPTS, RESPONSES, policy, other, beta=1.0)
    server = Server(policy)
    for ours, theirs, more in (
        (tmp_path / "policy", str(tmp_path / "other"), {}),
        (policy.model, other.model, {"tokenizer": policy.tokenizer}),
        (server, Server(other), {}),
        (Server(policy, tokenizer=None), other, {"tokenizer": policy.tokenizer}),
    ):
        found = score_steps(PROMPTS, RESPONSES, ours, theirs, beta=1.0, **more)
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_allclose(a.token_rewards, b.token_rewards, atol=1e-5)
    assert server.asked == 1  # one call, which the endpoint may batch as it likes


class Server:
    """What an Endpoint offers."""

    def __init__(self, model: LanguageModel, tokenizer="own") -> None:
        self.model, self.tokenizer, self.asked = model.model, model.tokenizer if tokenizer else None, 0

    def token_log_probs(self, prompts, responses):
        self.asked += 1
        return token_log_probs(self.model, prompts, responses)


def test_adapter_off_is_the_base_model(other):
    adapted, base = moved(), fresh(1)
    off = score_steps(PROMPTS, RESPONSES, adapted, "adapter-off", beta=1.0)
    explicit = score_steps(PROMPTS, RESPONSES, adapted, base, beta=1.0)
    for a, b in zip(off, explicit, strict=True):
        np.testing.assert_array_equal(a.token_rewards, b.token_rewards)
        assert np.abs(a.token_rewards).max() > 0.01
    with pytest.raises(ValueError, match="no adapter"):
        score_steps(PROMPTS, RESPONSES, other, "adapter-off", beta=1.0)


def test_a_peft_folder_loads_and_scores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(fresh(1), tmp_path / "base")
    adapted = moved()
    adapted.model.peft_config["default"].base_model_name_or_path = "base"
    adapted.model.save_pretrained(tmp_path / "adapter")
    expected = score_steps(PROMPTS, RESPONSES, adapted, "adapter-off", beta=1.0)
    found = score_steps(PROMPTS, RESPONSES, tmp_path / "adapter", "adapter-off", beta=1.0)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a.token_rewards, b.token_rewards, atol=1e-6)


def test_an_adapter_that_trl_trained_loads_and_scores(tmp_path, monkeypatch):
    trl = pytest.importorskip("trl")
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM

    monkeypatch.chdir(tmp_path)
    start = fresh(1)
    save(start, tmp_path / "base")
    rows = [{"prompt": p, "chosen": "1+2=3", "rejected": "4"} for p in PROMPTS]
    arguments = trl.DPOConfig(
        output_dir=str(tmp_path / "run"),
        per_device_train_batch_size=2,
        max_steps=2,
        learning_rate=0.1,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )
    trainer = trl.DPOTrainer(
        model=AutoModelForCausalLM.from_pretrained("base"),
        args=arguments,
        train_dataset=Dataset.from_list(rows),
        processing_class=start.tokenizer,
        peft_config=LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM"),
    )
    trainer.train()
    trainer.save_model(str(tmp_path / "adapter"))
    scored = score_steps(PROMPTS, RESPONSES, tmp_path / "adapter", "adapter-off", beta=0.1)
    assert max(abs(one.scores["sum"]) for one in scored) > 1e-3
    trained = LanguageModel(trainer.model.eval(), start.tokenizer, "")
    for a, b in zip(scored, score_steps(PROMPTS, RESPONSES, trained, "base", beta=0.1), strict=True):
        np.testing.assert_allclose(a.token_rewards, b.token_rewards, atol=1e-5)


def test_bad_arguments_are_named(policy, other):
    with pytest.raises(ValueError, match="2 prompts and 1 responses"):
        score_steps(["a", "b"], ["c"], policy, beta=1.0)
    with pytest.raises(ValueError, match="beta is 0"):
        score_steps(["a"], ["b"], policy, beta=0)
    with pytest.raises(ValueError, match="2 entries in finished and 1 responses"):
        score_steps(["a"], ["b"], policy, beta=1.0, finished=[True, True])
    with pytest.raises(ValueError, match="without a tokenizer"):
        score_steps(["a"], ["b"], policy.model, beta=1.0)
    foreign = build_tokenizer(["x"])
    with pytest.raises(ValueError, match="not the policy's"):
        score_steps(["a"], ["b"], policy, LanguageModel(other.model, foreign, ""), beta=1.0)
    with pytest.raises(ValueError, match="how is 'sentence'"):
        score_steps(["a"], ["b"], policy, beta=1.0, segment="sentence")
    assert score_steps([], [], policy, beta=1.0) == []
