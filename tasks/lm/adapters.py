"""Low-rank adapters (LoRA, Hu et al. 2021, arXiv 2106.09685) by peft; the same model without them is the reference."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from tasks.stage import UserError


def add_lora(model, *, r: int, alpha: float, targets: str | Sequence[str], seed: int):
    """Put adapters into the linear layers `targets` of a causal LM: W x becomes W x + (alpha / r) B A x.

    A is drawn from `seed` alone, B is 0, so that the model computes what it did before; only A and B are trainable.
    There is no dropout. `targets` as in peft: ``all-linear`` (all but the head), or the ends of the layers' names.
    The model is changed in place and comes back wrapped, a ``peft.PeftModel``.

    Raises:
        UserError: the model has an adapter already (with adapters off, it would not be what the training started from),
            or a target names none of its layers.
    """
    from peft import LoraConfig, TaskType, get_peft_model

    if hasattr(model, "peft_config"):
        raise UserError(f"{model.get_base_model().name_or_path}: has an adapter already; train from a whole model")
    if not isinstance(targets, str):
        targets = list(targets)
        names = [name for name, _ in model.named_modules()]
        for target in targets:
            if not any(name == target or name.endswith(f".{target}") for name in names):
                raise UserError(f"targets: {target!r} is the name of no layer of {type(model).__name__}")
    config = LoraConfig(
        task_type=TaskType.CAUSAL_LM, r=r, lora_alpha=alpha, target_modules=targets, lora_dropout=0.0, bias="none"
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            return get_peft_model(model, config)
        except ValueError as error:
            raise UserError(f"targets: {targets!r}: {str(error).splitlines()[0]}") from None


@contextmanager
def adapter_off(model) -> Iterator:
    """Within the block, a model with adapters computes what its base model does, to the last bit: the reference.

    Which weights are trainable is afterwards as before (peft alone would make those of every adapter so).

    Raises:
        ValueError: the model has no adapter.
    """
    if not hasattr(model, "disable_adapter"):
        raise ValueError("the model has no adapter that could be off; give the reference as a model of its own")
    trainable = [(weight, weight.requires_grad) for weight in model.parameters()]
    try:
        with model.disable_adapter():
            yield model
    finally:
        for weight, was in trainable:
            weight.requires_grad_(was)


def require_adapter_only(model) -> None:
    """Check that training will move adapters alone, so that the model with adapters off stays what it was.

    Raises:
        UserError: a trainable weight is not an adapter's, as with ``modules_to_save``, trained embeddings, norms or
            biases; or no weight is trainable.
    """
    trainable = [name for name, weight in model.named_parameters() if weight.requires_grad]
    if not trainable:
        raise UserError("the model has no trainable weight: its adapters were read for scoring, or there are none")
    for name in trainable:
        if not any(part.startswith("lora_") for part in name.split(".")):
            raise UserError(
                f"{name}: is trainable and no adapter's: with adapters off, the model would not be its own reference"
            )
