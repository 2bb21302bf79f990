"""Speed of sampling programs from a small language model, beside transformers' `generate`. Part of the bench of swiftcode."""

import json
import time
from pathlib import Path

from tests.bench.measure import ROOT, row

import torch  # isort: skip

from tasks.lm.loading import LanguageModel, load
from tasks.lm.sampling import sample
from tasks.lm.tokens import encode_prompt, encode_response, end_tokens
from tasks.swiftcode.generation import fences
from tasks.swiftcode.prompts import messages, prefill

N_FUNCTIONS, N_SAMPLES, MAX_NEW_TOKENS = 8, 8, 96
HOW = {"temperature": 0.8, "top_p": 0.95, "top_k": 50}


def rows(folder: Path) -> list[dict]:
    """New tokens a CPU second of one thread, up to each answer's end, for the model in `folder` (SmolLM2-135M-Instruct).

    Eight functions of the pool, eight answers each, at most 96 tokens; the same prompts, ends and distribution on both sides.
    `generate` computes an answer that has ended on until the last one of its batch ends; those tokens do not count.
    """
    torch.set_num_threads(1)
    model = load(folder)
    prompts = [_prompt(model.tokenizer, text) for text in _functions()[:N_FUNCTIONS]]
    end = [*end_tokens(model.model, model.tokenizer), *fences(model.tokenizer)]
    _ours(model, prompts[:1], end, 1)  # not counted
    found = []
    for batch in (8, 32, 64):
        found.append(
            row(f"sampling from SmolLM2, {batch} answers at a time", _ours(model, prompts, end, batch), "tok/s")
        )
    theirs = _generate(model, prompts, end)
    found.append(row("  64 at a time / transformers' generate", found[-1]["value"] / theirs, "×", -2))
    return found


def _functions() -> list[str]:
    folders = sorted(path.parent for path in (ROOT / "tasks/swiftcode/pool").glob("*/task.json"))
    kinds = {folder: json.loads((folder / "task.json").read_text(encoding="utf-8"))["kind"] for folder in folders}
    return [(folder / "prompt.md").read_text(encoding="utf-8") for folder in folders if kinds[folder] == "function"]


def _prompt(tokenizer, text: str) -> list[int]:
    task = {"kind": "function", "prompt": text}
    asked = encode_prompt(tokenizer, messages(task, "python", hint=False))
    return asked + encode_response(tokenizer, prefill(task, "python"), finished=False)


def _ours(model: LanguageModel, prompts: list, end: list[int], batch: int) -> float:
    begin = time.process_time()
    keys = [str(i) for i in range(len(prompts))]
    drawn = sample(
        model.model, prompts, keys, N_SAMPLES, end=end, max_new_tokens=MAX_NEW_TOKENS, seed=1, batch=batch, **HOW
    )
    return sum(len(one.tokens) for answers in drawn for one in answers) / (time.process_time() - begin)


def _generate(model: LanguageModel, prompts: list, end: list[int]) -> float:
    model.tokenizer.padding_side = "left"
    torch.manual_seed(1)
    begin = time.process_time()
    batch = model.tokenizer.pad({"input_ids": prompts}, return_tensors="pt")
    with torch.inference_mode():
        out = model.model.generate(
            **batch,
            do_sample=True,
            max_new_tokens=MAX_NEW_TOKENS,
            num_return_sequences=N_SAMPLES,
            eos_token_id=end,
            pad_token_id=model.tokenizer.pad_token_id,
            **HOW,
        )
    seconds = time.process_time() - begin
    new = out[:, batch["input_ids"].shape[1] :]
    ended = torch.isin(new, torch.tensor(end))
    useful = torch.where(ended.any(1), ended.int().argmax(1) + 1, new.shape[1])
    return int(useful.sum()) / seconds
