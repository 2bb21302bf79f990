"""From text to token ids and back: prompts and responses are tokenised apart, so that no token crosses their border."""

from collections.abc import Sequence

import numpy as np

Prompt = str | Sequence[dict[str, str]]  # a text, or chat messages with role and content


def encode_prompt(tokenizer, prompt: Prompt) -> list[int]:
    """Token ids of a prompt, up to where the response begins.

    With a chat template: the template over the messages (a text is one user message) and the opening of the
    assistant's turn, special tokens as the template wrote them and no other. Without: the text, after the
    begin-of-text token where the tokenizer has the habit of writing one.

    Raises:
        ValueError: chat messages for a tokenizer that has no chat template.
    """
    if tokenizer.chat_template is None:
        if not isinstance(prompt, str):
            raise ValueError("the tokenizer has no chat template: give each prompt as one text")
        return list(tokenizer(prompt)["input_ids"]) if _writes_no_end(tokenizer) else _plain(tokenizer, prompt)
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    # as text: `tokenize=True` answers with a dictionary in newer versions of transformers and with ids in older ones
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return _plain(tokenizer, text)


def encode_response(tokenizer, response: str, finished: bool = True) -> list[int]:
    """Token ids of a response: its text by itself, and one end token exactly where it is `finished`.

    End tokens that the text carries at its end, as texts decoded with special tokens do, are not doubled; the name of a
    special token anywhere else is plain text.

    Raises:
        ValueError: the tokenizer has no end token.
    """
    if tokenizer.eos_token_id is None:
        raise ValueError("the tokenizer has no end token (eos_token), which ends a response")
    text = _without_end(tokenizer, response)
    return _literal(tokenizer, text)["input_ids"] + ([tokenizer.eos_token_id] if finished else [])


def response_offsets(tokenizer, response: str, tokens: Sequence[int]) -> list[tuple[int, int]]:
    """(first character, character after the last) of every token in the response's text; of end tokens: (length, length).

    From the tokenizer's own offsets where they belong to these tokens; else (sampled tokens need not be those that
    the tokenizer would choose) by decoding one token more each time, a character of several tokens going to its last.
    """
    tokens = [int(token) for token in tokens]
    n_ends = next((i for i, t in enumerate(reversed(tokens)) if t != tokenizer.eos_token_id), len(tokens))
    inner = tokens[: len(tokens) - n_ends]
    if tokenizer.is_fast:
        found = _literal(tokenizer, _without_end(tokenizer, response), return_offsets_mapping=True)
        if list(found["input_ids"]) == inner:
            return [tuple(span) for span in found["offset_mapping"]] + [(len(response), len(response))] * n_ends
    spans, begin = [], 0
    for i in range(1, len(inner) + 1):
        text = tokenizer.decode(inner[:i], clean_up_tokenization_spaces=False)
        end = max(begin, _common_prefix(text, response))
        spans.append((begin, end))
        begin = end
    return spans + [(len(response), len(response))] * n_ends


def end_tokens(model, tokenizer) -> list[int]:
    """Ids at which sampling stops: the tokenizer's end token and those of the model's generation config."""
    of_config = getattr(model, "generation_config", None)
    of_config = of_config.eos_token_id if of_config is not None else None
    listed = of_config if isinstance(of_config, list) else [of_config]
    return sorted({i for i in [tokenizer.eos_token_id, *listed] if i is not None})


def pad(sequences: Sequence[Sequence[int]], pad_id: int, side: str = "right") -> tuple[np.ndarray, np.ndarray]:
    """Rectangles (ids int64, mask bool) of ragged sequences. The mask comes from the lengths, so pad may equal the end token.

    >>> pad([[5, 6], [7]], 0)[0].tolist(), pad([[5, 6], [7]], 0, "left")[1].tolist()
    ([[5, 6], [7, 0]], [[True, True], [False, True]])
    """
    lengths = np.array([len(s) for s in sequences], dtype=np.int64)
    width = int(lengths.max(initial=0))
    columns = np.arange(width)
    mask = columns >= width - lengths[:, None] if side == "left" else columns < lengths[:, None]
    ids = np.full(mask.shape, pad_id, dtype=np.int64)
    ids[mask] = [token for sequence in sequences for token in sequence]
    return ids, mask


def _literal(tokenizer, text: str, **more):
    return tokenizer(text, add_special_tokens=False, split_special_tokens=True, **more)


def _without_end(tokenizer, response: str) -> str:
    text, end = response, tokenizer.eos_token
    while text.rstrip().endswith(end):
        text = text.rstrip().removesuffix(end)
    return text


def _plain(tokenizer, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _writes_no_end(tokenizer) -> bool:
    """Whether the tokenizer's special tokens go before a text only: an end token after the prompt would end the turn."""
    ids = tokenizer("", add_special_tokens=True)["input_ids"]
    return not ids or ids[-1] != tokenizer.eos_token_id or tokenizer.eos_token_id == tokenizer.bos_token_id


def _common_prefix(decoded: str, text: str) -> int:
    limit = min(len(decoded), len(text))
    return next((i for i in range(limit) if decoded[i] != text[i]), limit)
