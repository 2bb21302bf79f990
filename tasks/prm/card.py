"""What a trained PRM's folder says of itself: ``prm.json`` for programs, a model card for people."""

from typing import Any

import numpy as np

from tasks.prm.params import Train
from tasks.prm.training import Labelled
from tasks.tables import significant


def about(
    loss: str, beta: float, parameters: Train, data: Labelled, counts: dict[str, int], *, generator: str, weights: str
) -> dict[str, Any]:
    """All that a scorer needs to use the model as it was trained, and what it was trained on.

    ``nll_correct`` and ``nll_wrong``: mean −log reference of a response, nats (None where there is none).
    """
    nll = np.array([-float(values.sum(dtype=np.float64)) for values in data.reference])
    return {
        "loss": loss,
        "beta": significant(beta),
        "reference": generator,
        "reference_sha256": weights,
        "adapter": parameters.lora is not None,
        "template": "the tokenizer's chat template, the problem as one user message",
        "segment": parameters.segment,
        "counts": counts,
        "nll_correct": _mean(nll[data.correct]),
        "nll_wrong": _mean(nll[~data.correct]),
        "parameters": parameters.model_dump(mode="json"),
    }


def card(dataset: str, about: dict[str, Any]) -> str:
    """The model card in Markdown, with the metadata that the Hugging Face hub reads."""
    reference = "adapter-off" if about["adapter"] else about["reference"]
    load = (
        f'AutoPeftModelForCausalLM.from_pretrained("data/prm/{dataset}/models/{about["loss"]}")  # from peft'
        if about["adapter"]
        else f'AutoModelForCausalLM.from_pretrained("data/prm/{dataset}/models/{about["loss"]}")  # from transformers'
    )
    settings = "\n".join(f"| {name} | {value} |" for name, value in about["parameters"].items())
    return f"""---
library_name: {"peft" if about["adapter"] else "transformers"}
tags: [process-reward-model, implicit-prm]
---

# Implicit process reward model: {dataset}, loss {about["loss"]}

A causal language model whose log-probabilities, compared with those of its reference, are rewards: a step's reward is
{about["beta"]:g} × Σ [log policy − log reference] over its tokens (Yuan et al., "Free Process Rewards without Process
Labels", ICML 2025). It was trained on whether final answers are right; no step was labelled.

Trained from `{about["reference"]}` on {about["counts"]["used"]} responses, {about["counts"]["used_correct"]} of them correct.

```python
from tasks.prm.score import score_steps

scored = score_steps(
    prompts,
    responses,
    "data/prm/{dataset}/models/{about["loss"]}",
    "{reference}",
    beta={about["beta"]:g},
    segment="{about["segment"]}",
)
model = {load}
```

For choosing among samples of the reference itself, leave the reference out (`reference=None`); see the report.

## What it is not

It is no policy: trained to tell responses apart, it answers worse than the model that it began as. Only the sum of a
response's rewards was trained; how that sum falls on the steps is weakly determined. A right answer reached by a wrong
step counts as right.

## Parameters

| parameter | value |
|---|---|
{settings}
"""


def _mean(values: np.ndarray) -> float | None:
    return significant(float(values.mean())) if len(values) else None
