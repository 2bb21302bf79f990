"""A random tiny Llama with a tokenizer, fresh for every test, and the same with pad == end, as SmolLM2 has it."""

import pytest
import torch

from tasks.lm.loading import LanguageModel
from tasks.lm.tiny import build_model, build_tokenizer

SYMBOLS = ["\n", "\n\n", "Step 1:", "Step 2:", *"0123456789", "+", "-", "=", "Answer:", " "]


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    torch.set_num_threads(1)  # of models this small, more threads are slower, and their sums may differ in the last bit


@pytest.fixture
def tiny() -> LanguageModel:
    tokenizer = build_tokenizer(SYMBOLS)
    model = build_model(tokenizer, hidden=16, layers=2, heads=2, intermediate=32, seed=1)
    return LanguageModel(model, tokenizer, "tiny")


@pytest.fixture
def pad_is_end(tiny) -> LanguageModel:
    tiny.tokenizer.pad_token = tiny.tokenizer.eos_token
    return tiny
