"""Causal language models in folders: Hugging Face models and peft adapters, in safetensors and nothing that runs code."""

import contextlib
import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from tasks.stage import UserError
from tasks.tables import read_json

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PICKLED = ("pytorch_model*.bin", "adapter_model*.bin")
# how the tokenizer was found when it was last read, not what it does
OF_READING = ("is_local", "local_files_only", "name_or_path")
SAID = 300  # characters of another library's message


@dataclass(frozen=True)
class LanguageModel:
    """A model with its tokenizer; `name` is its folder, relative to the working directory, or its last part outside it."""

    model: Any
    tokenizer: Any
    name: str


def load(
    folder: Path, *, base: Path | None = None, device: str = "cpu", dtype: torch.dtype = torch.float32
) -> LanguageModel:
    """Read a causal LM, or a peft adapter on top of one, in evaluation mode; the weights of an adapter come frozen.

    An adapter is a folder with ``adapter_config.json``, or one that holds such a folder (``default`` where there are
    several). Its base is `base`, else what its configuration names: a path, looked up from the working directory and
    then from the adapter's folder. The tokenizer is the adapter's where it has one, else the base's.

    Nothing is fetched, no code of the folder runs, and pickled weights are not read.

    Raises:
        UserError: a file lacks or is damaged; weights are pickled, lack, have another shape, or are left over; the
            folder needs code of its own (``auto_map``); the base of an adapter is not there; the tokenizer has more
            tokens than the model, or no end token.
    """
    folder = _adapter_folder(folder)
    if not (folder / ADAPTER).is_file():
        if base is not None:
            raise UserError(f"{folder}: is a whole model; a base ({base}) is for adapters only")
        return _checked(_read_model(folder, dtype).to(device), _read_tokenizer(folder), folder)
    config = _adapter_config(folder)
    base = _base_of(folder, config) if base is None else base
    if (base / ADAPTER).is_file():
        raise UserError(f"{base}: is an adapter itself; the base of an adapter must be a whole model")
    has_tokenizer = (folder / "tokenizer_config.json").is_file()
    tokenizer = _read_tokenizer(folder if has_tokenizer else base)
    model = _read_adapter(folder, config, _read_model(base, dtype))
    return _checked(model.to(device), tokenizer, folder)


def save(language_model: LanguageModel, folder: Path) -> None:
    """Write a model's safetensors and its tokenizer, or of a peft model its adapter alone; the same bytes each time.

    No path of this machine is written: an adapter names its base relative to the working directory, and a base outside
    of it by its last part alone (`load` then needs to be told where it lies).
    """
    folder.mkdir(parents=True, exist_ok=True)
    model = language_model.model
    if hasattr(model, "peft_config"):
        _write_adapter(model, folder)
    else:
        with _quiet():
            model.save_pretrained(folder)
        language_model.tokenizer.save_pretrained(folder)
        file = folder / "tokenizer_config.json"
        _write_sorted(file, {k: v for k, v in read_json(file).items() if k not in OF_READING})
    for weights in folder.glob("*.safetensors"):  # which are written for their owner's eyes only
        shutil.copymode(next(folder.glob("*config.json")), weights)


def read_gguf(file: Path, *, dtype: torch.dtype = torch.float32) -> LanguageModel:
    """Read a GGUF file (llama.cpp's format) as a model with its tokenizer; quantised weights become plain numbers.

    Raises:
        UserError: not a GGUF file, or one of an architecture that transformers does not know.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    where = {"gguf_file": file.name, "local_files_only": True}
    with _quiet(), _one_line(f"{file}: not a language model in GGUF format that can be read"):
        tokenizer = AutoTokenizer.from_pretrained(file.parent, **where)
        # left packed, the weights could not be saved
        plain = GgufConfig(dequantize=True)
        model = AutoModelForCausalLM.from_pretrained(file.parent, dtype=dtype, quantization_config=plain, **where)
    return _checked(model, tokenizer, file)


def digest(model: torch.nn.Module) -> str:
    """SHA-256 over the names, types, shapes and bytes of all weights: what a cache of a model's results is filed under.

    Tied weights count under both names. The digest of a model that was saved and loaded again is that of the first.
    """
    found = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        plain = tensor.detach().cpu().contiguous()
        found.update(f"{name} {plain.dtype} {list(plain.shape)}\n".encode())
        found.update(plain.reshape(-1).view(torch.uint8).numpy())
    return found.hexdigest()


def _checked(model, tokenizer, folder: Path) -> LanguageModel:
    rows, highest = model.get_input_embeddings().weight.shape[0], max(tokenizer.get_vocab().values(), default=-1)
    if highest >= rows:
        raise UserError(f"{folder}: the tokenizer has a token {highest}; the model's embedding ends at {rows - 1}")
    if tokenizer.eos_token_id is None:
        raise UserError(f"{folder}: the tokenizer names no end token (eos_token), which ends a response")
    return LanguageModel(model.eval(), tokenizer, _portable(folder))


def _adapter_folder(folder: Path) -> Path:
    """The folder itself, or the adapter within it where it holds nothing but adapters."""
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder")
    if (folder / ADAPTER).is_file() or (folder / "config.json").is_file():
        return folder
    within = sorted(file.parent for file in folder.glob(f"*/{ADAPTER}"))
    if len(within) > 1 and folder / "default" not in within:
        names = ", ".join(path.name for path in within)
        raise UserError(f"{folder}: holds the adapters {names}; name the folder of one of them")
    if within:
        return within[0] if len(within) == 1 else folder / "default"
    raise UserError(f"{folder}: neither a model (no config.json) nor an adapter (no {ADAPTER})")


def _read_model(folder: Path, dtype: torch.dtype):
    from transformers import AutoModelForCausalLM

    if not (folder / "config.json").is_file():
        raise UserError(
            f"{folder}: there is no config.json; a folder of a Hugging Face causal language model is needed"
        )
    _refuse_code(folder / "config.json")
    if not ((folder / WEIGHTS).is_file() or (folder / INDEX).is_file()):
        _refuse_pickles(folder, WEIGHTS)
    for file in sorted(folder.glob("*.safetensors")):
        _readable(file)
    with _quiet(), _one_line(f"{folder}: not a causal language model that transformers can read"):
        model, report = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,  # they are told below, by name
            output_loading_info=True,
        )
    for name, found, needed in sorted(report["mismatched_keys"])[:1]:
        raise UserError(f"{folder}: weight {name} has shape {list(found)}; config.json needs {list(needed)}")
    _all_there(folder, report["missing_keys"], report["unexpected_keys"])
    return model


def _read_tokenizer(folder: Path):
    from transformers import AutoTokenizer

    if not (folder / "tokenizer_config.json").is_file():
        raise UserError(f"{folder}: there is no tokenizer (no tokenizer_config.json)")
    _refuse_code(folder / "tokenizer_config.json")
    with _one_line(f"{folder}: not a tokenizer that transformers can read"):
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def _adapter_config(folder: Path):
    from peft import PeftConfig

    if not (folder / ADAPTER_WEIGHTS).is_file():
        _refuse_pickles(folder, ADAPTER_WEIGHTS)
    _readable(folder / ADAPTER_WEIGHTS)
    read_json(folder / ADAPTER)  # says where a broken one is
    with _one_line(f"{folder / ADAPTER}: not a configuration that peft can read"):
        config = PeftConfig.from_pretrained(str(folder))
    if config.is_prompt_learning:
        kind = getattr(config.peft_type, "value", config.peft_type)
        raise UserError(
            f"{folder / ADAPTER}: peft_type {kind} adds tokens to the prompt; adapters of weights are needed"
        )
    return config


def _base_of(folder: Path, config) -> Path:
    named = config.base_model_name_or_path
    if not isinstance(named, str) or not named:
        raise UserError(f"{folder / ADAPTER}: base_model_name_or_path is {named!r}; the base must be named explicitly")
    tried = [Path(named), folder / named]
    for path in tried:
        if path.is_dir():
            return path
    raise UserError(
        f"{folder / ADAPTER}: base_model_name_or_path {named!r} is no folder, neither from the working directory nor"
        " from the adapter's; nothing is fetched from a hub"
    )


def _read_adapter(folder: Path, config, model):
    from peft import PeftModel, get_peft_model_state_dict

    with _one_line(f"{folder}: this adapter does not fit its base {model.name_or_path}"):
        adapted = PeftModel.from_pretrained(model, str(folder), config=config, is_trainable=False)
    with safe_open(folder / ADAPTER_WEIGHTS, framework="pt") as file:
        stored = set(file.keys())
    # peft would only warn of weights that lack, and would write those of the base model over the base model
    wanted = set(get_peft_model_state_dict(adapted, save_embedding_layers=False))
    _all_there(folder / ADAPTER_WEIGHTS, wanted - stored, stored - wanted)
    return adapted


def _write_adapter(model, folder: Path) -> None:
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    if list(model.peft_config) != ["default"]:
        raise ValueError(f"one adapter of the name 'default' is saved; this model has {list(model.peft_config)}")
    # Not save_pretrained: it writes a README of its own, and sets in an order that differs from run to run.
    weights = get_peft_model_state_dict(model, save_embedding_layers=False)
    save_file({k: v.contiguous() for k, v in weights.items()}, folder / ADAPTER_WEIGHTS, metadata={"format": "pt"})
    config = model.peft_config["default"].to_dict()
    named = config["base_model_name_or_path"]
    config |= {"base_model_name_or_path": _portable(Path(named)) if named else None, "inference_mode": True}
    _write_sorted(folder / ADAPTER, config)


def _write_sorted(file: Path, content: dict) -> None:
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, default=sorted)  # sets become sorted lists
    file.write_text(text + "\n", encoding="utf-8")


def _portable(path: Path) -> str:
    """The path from the working directory, or its last part alone where it lies outside."""
    absolute, here = Path(os.path.abspath(path)), Path.cwd()
    return absolute.relative_to(here).as_posix() if absolute.is_relative_to(here) else absolute.name


def _refuse_code(config: Path) -> None:
    content = read_json(config)
    if isinstance(content, dict) and content.get("auto_map"):
        raise UserError(f"{config}: auto_map: the model needs code of its own, which is not run")


def _refuse_pickles(folder: Path, wanted: str) -> None:
    pickled = sorted(file.name for pattern in PICKLED for file in folder.glob(pattern))
    if pickled:
        raise UserError(f"{folder}: {pickled[0]} is pickled, and so may run code; only {wanted} is read")
    raise UserError(f"{folder}: there are no weights (no {wanted})")


def _readable(file: Path) -> None:
    try:
        with safe_open(file, framework="pt"):
            pass
    except (SafetensorError, OSError) as error:
        raise UserError(f"{file}: not a readable safetensors file: {error}") from None


def _all_there(where: Path, missing, unexpected) -> None:
    for names, fault in ((missing, "lacks the weight"), (unexpected, "has no place for the weight")):
        if names:
            more = f", and {len(names) - 1} more" if len(names) > 1 else ""
            raise UserError(f"{where}: the model {fault} {min(names)}{more}")


@contextlib.contextmanager
def _one_line(what: str):
    """What transformers or peft says of a folder, as a user's error; damaged files bring them to errors of any kind."""
    try:
        yield
    except Exception as error:
        said = " ".join(str(error).split())
        raise UserError(f"{what}: {type(error).__name__}: {said[:SAID]}{'…' * (len(said) > SAID)}") from None


@contextlib.contextmanager
def _quiet():
    """Without progress bars of transformers, which fill a log."""
    from transformers.utils import logging

    was = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was:
            logging.enable_progress_bar()
