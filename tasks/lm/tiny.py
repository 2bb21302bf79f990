"""A tiny Llama and a tokenizer of given symbols: real transformers objects, small enough to train within minutes."""

from collections.abc import Sequence

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PAD, BEGIN, END, UNKNOWN = "<pad>", "<bos>", "<eos>", "<unk>"
# one begin token, then the contents of the messages as they stand
CHAT_TEMPLATE = "{{ bos_token }}{% for message in messages %}{{ message['content'] }}{% endfor %}"


def build_tokenizer(symbols: Sequence[str]) -> PreTrainedTokenizerFast:
    """A tokenizer that cuts text into the given symbols, the longest that fits first; other characters are `<unk>`.

    Ids: 0 pad, 1 begin, 2 end, 3 unknown, then the symbols in their order.

    >>> tokenizer = build_tokenizer(["\\n", "\\n\\n", "Step 1:", "1", "+", "="])
    >>> tokenizer("Step 1:1+1\\n\\n", add_special_tokens=False)["input_ids"]
    [6, 7, 8, 7, 5]
    >>> tokenizer.decode([6, 7, 8, 7, 5])
    'Step 1:1+1\\n\\n'
    """
    if len(set(symbols)) < len(symbols) or "" in symbols:
        raise ValueError("symbols: each must be a text of its own")
    vocabulary = {symbol: i for i, symbol in enumerate([PAD, BEGIN, END, UNKNOWN, *symbols])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    longest_first = sorted(symbols, key=lambda symbol: (-len(symbol), symbol))
    # other text character by character: else the piece "<eos>" of a text would be found in the vocabulary
    pattern = "|".join([*(_escaped(symbol) for symbol in longest_first), r"[\s\S]"])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=BEGIN,
        eos_token=END,
        unk_token=UNKNOWN,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def build_model(
    tokenizer: PreTrainedTokenizerFast,
    *,
    hidden: int,
    layers: int,
    heads: int,
    intermediate: int,
    seed: int,
    max_positions: int = 512,
) -> LlamaForCausalLM:
    """A Llama with tied embeddings and weights drawn from `seed` alone; float32, in evaluation mode."""
    if hidden % (2 * heads):
        raise ValueError(
            f"hidden {hidden} must be an even multiple of heads {heads}: each head rotates pairs of numbers"
        )
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=max_positions,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).eval()


def _escaped(symbol: str) -> str:
    return "".join(f"\\x{{{ord(c):x}}}" if not c.isalnum() else c for c in symbol)
