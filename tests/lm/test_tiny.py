"""The tiny model and its tokenizer are plain transformers objects, the same for the same seed."""

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tasks.lm.tiny import build_model, build_tokenizer
from tasks.lm.tokens import encode_response

SHAPE = {"hidden": 16, "layers": 1, "heads": 2, "intermediate": 16}


def test_text_comes_back_and_the_longest_symbol_wins():
    tokenizer = build_tokenizer(["\n", "\n\n", ".", "(", "ab", "a"])
    text = "a\n\nab\n(a."
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert [tokenizer.decode([i]) for i in ids] == ["a", "\n\n", "ab", "\n", "(", "a", "."]
    assert tokenizer.decode(ids) == text


def test_other_text_is_unknown_and_equal_symbols_are_refused():
    tokenizer = build_tokenizer(["a"])
    unknown = tokenizer.unk_token_id
    assert tokenizer("xya", add_special_tokens=False)["input_ids"] == [unknown, unknown, 4]
    assert encode_response(tokenizer, "a<eos>a") == [4, *[unknown] * 5, 4, tokenizer.eos_token_id]
    with pytest.raises(ValueError, match="text of its own"):
        build_tokenizer(["a", "a"])


def test_transformers_loads_what_was_saved(tmp_path):
    tokenizer = build_tokenizer(["a", "b"])
    model = build_model(tokenizer, seed=1, **SHAPE)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    ids = torch.tensor([AutoTokenizer.from_pretrained(tmp_path)("ab", add_special_tokens=False)["input_ids"]])
    assert torch.equal(again(ids).logits, model(ids).logits)


def test_weights_come_from_the_seed_alone():
    tokenizer = build_tokenizer(["a"])
    torch.manual_seed(5)
    first, state = build_model(tokenizer, seed=1, **SHAPE), torch.random.get_rng_state()
    torch.manual_seed(6)
    second, other = build_model(tokenizer, seed=1, **SHAPE), build_model(tokenizer, seed=2, **SHAPE)
    weight = "model.layers.0.mlp.up_proj.weight"
    assert torch.equal(first.state_dict()[weight], second.state_dict()[weight])
    assert not torch.equal(first.state_dict()[weight], other.state_dict()[weight])
    torch.manual_seed(5)
    assert torch.equal(torch.random.get_rng_state(), state)  # the caller's own numbers go on as they were


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="hidden 18 must be an even multiple of heads 2"):
        build_model(build_tokenizer(["a"]), seed=1, **{**SHAPE, "hidden": 18})
