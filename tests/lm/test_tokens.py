"""Borders between prompt and response, end tokens, padding: the faults that other trainers have had in public."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tasks.lm.tiny import build_tokenizer
from tasks.lm.tokens import encode_prompt, encode_response, end_tokens, pad, response_offsets

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def merging() -> PreTrainedTokenizerFast:
    """A byte-level BPE that merges across spaces and line ends, pad == end, with a chat template: like SmolLM2's."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    inner.train_from_iterator(["Hello world.\n\nStep 1: 3 + 4 = 7.\n\n Step 2: ok. \n" * 20], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        chat_template=CHATML,
    )


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
def test_no_token_crosses_the_border(merging, prompt, response):
    response = response.replace("<|im_end|>", "")
    ids = encode_response(merging, response)
    assert ids[-1] == merging.eos_token_id
    assert ids[:-1] == merging(response, add_special_tokens=False)["input_ids"]
    whole = encode_prompt(merging, prompt) + ids
    assert merging.decode(whole).endswith(merging.decode(ids))


def test_a_prompt_that_ends_in_what_would_merge_keeps_its_border(merging):
    text = "Hello world.\n\nStep 1: 3 + 4 = 7."

    def ids(part: str) -> list[int]:
        return merging(part, add_special_tokens=False)["input_ids"]

    merged = [cut for cut in range(1, len(text)) if ids(text)[: len(ids(text[:cut]))] != ids(text[:cut])]
    assert merged  # the trap is there: tokenised together, the prompt is no beginning of the whole
    for cut in merged:
        assert encode_response(merging, text[cut:], finished=False) == ids(text[cut:])


def test_the_chat_template_gives_ids_and_not_the_keys_of_a_dictionary(merging):
    ids = encode_prompt(merging, "1+1?")
    assert merging.decode(ids) == "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n"
    assert ids == encode_prompt(merging, [{"role": "user", "content": "1+1?"}])
    assert all(isinstance(i, int) for i in ids)


def test_one_end_token_a_finished_response_and_none_otherwise(merging):
    end = merging.eos_token_id
    assert encode_response(merging, "ok").count(end) == 1
    assert encode_response(merging, "ok<|im_end|>").count(end) == 1
    assert encode_response(merging, "ok<|im_end|><|im_end|>").count(end) == 1
    assert encode_response(merging, "ok<|im_end|>\n").count(end) == 1
    assert encode_response(merging, "o<|im_end|>k").count(end) == 1
    assert encode_response(merging, "ok", finished=False).count(end) == 0
    assert encode_response(merging, "") == [end]
    assert encode_response(merging, "", finished=False) == []


def test_the_name_of_a_special_token_within_a_response_is_text(merging):
    text = "a<|im_end|>b<|im_start|>"
    ids = encode_response(merging, text)
    assert merging.decode(ids[:-1]) == text
    spans = response_offsets(merging, text, ids)
    assert (spans[0][0], spans[-1]) == (0, (len(text), len(text)))
    assert all(a[1] == b[0] for a, b in pairwise(spans))


def test_a_tokenizer_without_an_end_is_refused():
    tokenizer = build_tokenizer(["a"])
    tokenizer.eos_token = None
    with pytest.raises(ValueError, match="no end token"):
        encode_response(tokenizer, "a")


def test_without_a_template_the_text_is_the_prompt_and_no_begin_token_is_invented():
    tokenizer = build_tokenizer(["a", "b"])
    tokenizer.chat_template = None
    tokenizer.bos_token = None
    assert encode_prompt(tokenizer, "ab") == [4, 5]
    with pytest.raises(ValueError, match="no chat template"):
        encode_prompt(tokenizer, [{"role": "user", "content": "a"}])


def test_a_tokenizer_that_ends_every_text_does_not_end_the_prompt():
    from tokenizers.processors import TemplateProcessing

    tokenizer = build_tokenizer(["a", "b"])
    tokenizer.chat_template = None
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<bos> $A <eos>", special_tokens=[("<bos>", 1), ("<eos>", 2)]
    )
    assert tokenizer("ab")["input_ids"] == [1, 4, 5, 2]  # the trap is there
    assert encode_prompt(tokenizer, "ab") == [4, 5]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)])
    assert encode_prompt(tokenizer, "ab") == [1, 4, 5]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40), st.booleans())
def test_offsets_cover_the_text_in_order(merging, text, finished):
    text = text.replace("<|im_end|>", "")
    ids = encode_response(merging, text, finished)
    spans = response_offsets(merging, text, ids)
    assert len(spans) == len(ids)
    assert all(0 <= a <= b <= len(text) for a, b in spans)
    assert [a for a, _ in spans] == sorted(a for a, _ in spans)
    if finished:
        assert spans[-1] == (len(text), len(text))


def test_offsets_of_tokens_that_the_tokenizer_would_not_choose():
    tokenizer = build_tokenizer(["\n", "\n\n", "a"])
    sampled = [6, 4, 4, 6, 2]  # a, line end, line end, a, end: the tokenizer would take the double line end
    assert tokenizer("a\n\na", add_special_tokens=False)["input_ids"] == [6, 5, 6]
    assert response_offsets(tokenizer, "a\n\na", sampled) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 4)]


def test_a_character_of_several_tokens_goes_to_one_of_them(merging):
    text = "é 🙂"
    ids = encode_response(merging, text)
    cut = [*ids[:1], *ids[1:]]
    spans = response_offsets(merging, text, cut)
    assert {i for a, b in spans for i in range(a, b)} == set(range(len(text)))


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=6), st.sampled_from(["left", "right"]))
def test_masks_come_from_lengths_whatever_the_pad_token(sequences, side):
    ids, mask = pad(sequences, 2, side)
    assert [row[m].tolist() for row, m in zip(ids, mask, strict=True)] == sequences
    assert ids.dtype == np.int64
    assert (ids[~mask] == 2).all()


def test_end_tokens_are_those_of_tokenizer_and_generation_config(tiny):
    assert end_tokens(tiny.model, tiny.tokenizer) == [tiny.tokenizer.eos_token_id]
    tiny.model.generation_config.eos_token_id = [7, 2]
    assert end_tokens(tiny.model, tiny.tokenizer) == [2, 7]
