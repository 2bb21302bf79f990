"""What the folder of a fine-tuned arm says of itself: ``arm.json`` for programs, a model card for people."""

from typing import Any

from tasks.swiftcode.examples import Examples
from tasks.swiftcode.params import Finetune

PROGRAMS = {
    "random-correct": "a correct program drawn at random for each task: the control, which shows what training on any "
    "correct program does",
    "fastest": "the most efficient correct program found for each task",
    "slowest": "the least efficient correct program found for each task: the opposite of what the method proposes",
}


def about(arm: str, examples: Examples, steps: int, parameters: Finetune, *, base: str, weights: str) -> dict[str, Any]:
    """On what one arm was trained, and how its examples compare with those of the other arms.

    ``tokens``: of one pass through the arm's examples; ``response_tokens``: the same count for every arm, because arms of
    the same tasks still differ in the lengths of their programs.
    """
    own = examples.arms[arm]
    return {
        "arm": arm,
        "base": base,
        "base_sha256": weights,
        "adapter": parameters.lora is not None,
        "tasks": [{"task": e.task, "language": e.language, "tokens": len(e.response)} for e in own],
        "counts": {**examples.counts, "steps": steps},
        "tokens": {
            "prompt": sum(len(e.prompt) for e in own),
            "response": sum(len(e.response) for e in own),
            "longest": max(map(len, own)),
        },
        "response_tokens": {name: sum(len(e.response) for e in rows) for name, rows in examples.arms.items()},
        "parameters": parameters.model_dump(mode="json"),
    }


def card(dataset: str, about: dict[str, Any]) -> str:
    """The model card in Markdown, with the metadata that the Hugging Face hub reads."""
    folder = f"data/swiftcode/{dataset}/models/{about['arm']}"
    counts, tokens = about["counts"], about["tokens"]
    if about["adapter"]:
        library, tokenizer = "peft", about["base"]
        load = (
            f'from peft import AutoPeftModelForCausalLM\n\nmodel = AutoPeftModelForCausalLM.from_pretrained("{folder}")'
        )
    else:
        library, tokenizer = "transformers", folder
        load = (
            f'from transformers import AutoModelForCausalLM\n\nmodel = AutoModelForCausalLM.from_pretrained("{folder}")'
        )
    settings = "\n".join(f"| {name} | {value} |" for name, value in about["parameters"].items())
    lengths = ", ".join(f"{name} {n}" for name, n in about["response_tokens"].items())
    return f"""---
library_name: {library}
pipeline_tag: text-generation
tags: [code-generation, code-efficiency, swiftcode]
---

# SwiftCode: {dataset}, arm {about["arm"]}

A causal language model that was fine-tuned on programs, {PROGRAMS[about["arm"]]} (Huang et al., "SwiftCode", ICML 2025).
Training was supervised: cross entropy of the programs' tokens and of the end token, nothing else.

Trained from `{about["base"]}` on {counts["used"]} examples ({tokens["response"]} response tokens) in {counts["steps"]} steps.
All arms have the same tasks, prompts and order of batches; their response tokens are: {lengths}. In {counts["same_program"]}
of the examples all arms have the same program.

```python
from transformers import AutoTokenizer
{load}
tokenizer = AutoTokenizer.from_pretrained("{tokenizer}")
```

Run from the repository's root{", because the adapter names its base from there" if about["adapter"] else ""}. Prompts are
the tokenizer's chat template over the messages of `tasks/swiftcode/prompts.py`.

## What it is not

It is one arm of a comparison, not a product: whether choosing efficient programs helps is said by the report, where this
arm stands beside the base model and the other arms. Its programs may be wrong, slow or unsafe: run them in a sandbox.
It knows of efficiency what the selected programs show; no time or memory was part of the loss.

## Parameters

| parameter | value |
|---|---|
{settings}
"""
