"""Folders of models: what is written is what is read, and what must not be read is told in one line."""

import json
import os
import pickle
import re
import shutil
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PrefixTuningConfig, get_peft_model
from safetensors.torch import load_file, save_file

from tasks.lm.adapters import adapter_off, add_lora
from tasks.lm.loading import LanguageModel, digest, load, read_gguf, save
from tasks.lm.tiny import build_model, build_tokenizer
from tasks.stage import UserError

IDS = torch.tensor([[1, 6, 8, 18, 9, 20, 10, 4]])


@pytest.fixture
def folder(tiny, tmp_path, monkeypatch) -> Path:
    """The folder `base` of the tiny model in the working directory, as a relative path."""
    monkeypatch.chdir(tmp_path)
    save(tiny, Path("base"))
    return Path("base")


@pytest.fixture
def adapter(folder) -> Path:
    """The folder `adapter` of an adapter on top of `base`, whose weights are all other than at the start."""
    found = load(folder)
    model = add_lora(found.model, r=2, alpha=4.0, targets="all-linear", seed=1)
    randomise(model)
    save(LanguageModel(model, found.tokenizer, "x"), Path("adapter"))
    return Path("adapter")


def randomise(model) -> None:
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.normal_(generator=generator)


@torch.inference_mode()
def logits(model) -> torch.Tensor:
    return model(IDS).logits


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def edit(file: Path, **changes) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def rewrite(file: Path, change) -> None:
    weights = load_file(file)
    change(weights)
    save_file(weights, file, metadata={"format": "pt"})


def refused(folder: Path, message: str, **options) -> None:
    with pytest.raises(UserError, match=f"^{message}") as error:
        load(folder, **options)
    assert "\n" not in str(error.value)


def test_a_saved_model_comes_back_bit_for_bit(tiny, folder):
    found = load(folder)
    assert torch.equal(logits(found.model), logits(tiny.model))
    assert digest(found.model) == digest(tiny.model)
    assert found.name == "base"
    assert not found.model.training
    assert found.model.dtype == torch.float32
    assert found.model.lm_head.weight.data_ptr() == found.model.model.embed_tokens.weight.data_ptr()
    text = "Step 1:1+2=3\n\nAnswer:3"
    assert found.tokenizer(text)["input_ids"] == tiny.tokenizer(text)["input_ids"]
    assert found.tokenizer.chat_template == tiny.tokenizer.chat_template
    assert found.tokenizer.eos_token_id == found.model.generation_config.eos_token_id == 2


def test_pad_that_is_the_end_token_comes_back(pad_is_end, tmp_path):
    save(pad_is_end, tmp_path / "m")
    tokenizer = load(tmp_path / "m").tokenizer
    assert tokenizer.pad_token_id == tokenizer.eos_token_id == 2


@pytest.mark.parametrize("kind", ["model", "adapter"])
def test_two_saves_and_a_save_of_what_was_loaded_have_the_same_bytes_without_paths(tiny, adapter, tmp_path, kind):
    first = Path("base" if kind == "model" else "adapter")
    for name, source in (("relative", first), ("absolute", first.absolute())):
        save(load(source), Path(name))
        assert contents(Path(name)) == contents(first)
    for name, content in contents(first).items():
        assert str(tmp_path).encode() not in content, name
        assert b"local_files_only" not in content, name
    modes = {oct(path.stat().st_mode) for path in first.iterdir()}
    assert len(modes) == 1, "all files may be read by the same people"


def test_a_sharded_model_and_one_in_half_precision_are_read(tiny, folder):
    tiny.model.save_pretrained("shards", max_shard_size="4KB")
    assert len(list(Path("shards").glob("*.safetensors"))) > 1
    for file in folder.glob("tokenizer*"):
        shutil.copy(file, "shards")
    assert digest(load(Path("shards")).model) == digest(tiny.model)
    save(LanguageModel(tiny.model.half(), tiny.tokenizer, ""), Path("half"))
    found = load(Path("half")).model
    assert found.dtype == torch.float32
    assert digest(found) == digest(tiny.model.float())


def test_the_digest_is_of_every_bit_name_type_and_shape(tiny, folder):
    first = digest(tiny.model)
    weight = tiny.model.model.layers[1].mlp.up_proj.weight
    with torch.no_grad():
        weight[3, 4] = torch.nextafter(weight[3, 4], torch.tensor(1.0))
    assert digest(tiny.model) != first
    assert digest(load(folder, dtype=torch.float16).model) != first
    layer = torch.nn.Linear(4, 2)
    same = digest(layer)
    layer.weight.data = layer.weight.data.reshape(4, 2)
    assert digest(layer) != same
    layer.bias.data = torch.zeros(2)
    floats = digest(layer)
    layer.bias = torch.nn.Parameter(torch.zeros(2, dtype=torch.int32), requires_grad=False)
    assert digest(layer) != floats
    assert digest(torch.nn.Sequential(layer)) != digest(torch.nn.ModuleDict({"1": layer}))


def test_folders_that_are_no_models_are_refused(folder, tmp_path):
    refused(Path("absent"), "absent: there is no such folder$")
    Path("empty").mkdir()
    refused(Path("empty"), r"empty: neither a model \(no config.json\) nor an adapter \(no adapter_config.json\)$")
    refused(folder, r"base: is a whole model; a base \(empty\) is for adapters only$", base=Path("empty"))
    for name, fault in (
        ("tokenizer_config.json", "there is no tokenizer"),
        ("model.safetensors", "there are no weights"),
    ):
        shutil.copytree(folder, f"no-{name}")
        (Path(f"no-{name}") / name).unlink()
        refused(Path(f"no-{name}"), f"no-{name}: {fault}")
    (folder / "config.json").write_text("{")
    refused(folder, "base/config.json: not valid JSON")
    (folder / "config.json").write_text('{"model_type": "t5"}')
    refused(folder, "base: not a causal language model that transformers can read: ")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("base/config.json", "[]", "base: not a causal language model that transformers can read: ValueError: "),
        ("base/config.json", {"hidden_size": "x"}, "base: not a causal .*: Field 'hidden_size' expected int, got str"),
        ("base/config.json", {"num_attention_heads": 0}, "base: not a causal .*: ZeroDivisionError: "),
        ("base/config.json", {"model_type": "newest"}, "base: not a causal .*: ValueError: .* has model type `newest`"),
        ("base/tokenizer_config.json", "7", "base: not a tokenizer that transformers can read: AttributeError: "),
        ("base/tokenizer.json", '{"model"', "base: not a tokenizer that transformers can read: JSONDecodeError: "),
        (
            "adapter/adapter_config.json",
            "null",
            "adapter/adapter_config.json: not a configuration that peft can read: ",
        ),
        ("adapter/adapter_config.json", {"r": "x"}, "adapter: this adapter does not fit its base base: TypeError: "),
        ("adapter/adapter_config.json", {"base_model_name_or_path": 5}, r"adapter/.*: base_model_name_or_path is 5; "),
    ],
)
def test_damaged_configurations_are_told_in_one_line(adapter, file, content, message):
    if isinstance(content, dict):
        edit(Path(file), **content)
    else:
        Path(file).write_text(content)
    refused(Path(file).parent, message)


class Trap:
    """A pickle that creates a file when it is read."""

    def __reduce__(self):
        return (open, ("sprung", "w"))


@pytest.mark.parametrize("kind", ["model", "adapter"])
def test_pickled_weights_are_not_read(adapter, kind):
    target = Path("base/model.safetensors" if kind == "model" else "adapter/adapter_model.safetensors")
    target.unlink()
    pickled = target.parent / ("pytorch_model.bin" if kind == "model" else "adapter_model.bin")
    pickled.write_bytes(pickle.dumps(Trap()))
    refused(
        target.parent, f"{target.parent}: {pickled.name} is pickled, and so may run code; only {target.name} is read$"
    )
    assert not Path("sprung").exists()


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_in_the_folder_does_not_run(folder, file):
    (folder / "own.py").write_text("open('sprung', 'w')\n")
    edit(folder / file, auto_map={"AutoModelForCausalLM": "own.Model", "AutoTokenizer": ["own.Tokenizer", None]})
    refused(folder, f"base/{file}: auto_map: the model needs code of its own, which is not run$")
    assert not Path("sprung").exists()


@pytest.mark.parametrize("damage", ["cut", "header", "empty"])
@pytest.mark.parametrize("kind", ["model", "adapter"])
def test_damaged_weights_are_refused(adapter, kind, damage):
    file = Path("base/model.safetensors" if kind == "model" else "adapter/adapter_model.safetensors")
    good = file.read_bytes()
    file.write_bytes({"cut": good[:-1], "header": b"\xff" * 8 + good[8:], "empty": b""}[damage])
    refused(file.parent, f"{file}: not a readable safetensors file: ")


def test_weights_that_lack_are_too_many_or_have_another_shape_are_refused(folder):
    """transformers itself only warns, and draws weights that lack at random."""
    good = (folder / "model.safetensors").read_bytes()
    file = folder / "model.safetensors"
    rewrite(file, lambda weights: (weights.pop("model.norm.weight"), weights.pop("model.layers.0.mlp.up_proj.weight")))
    refused(folder, "base: the model lacks the weight model.layers.0.mlp.up_proj.weight, and 1 more$")
    file.write_bytes(good)
    rewrite(file, lambda weights: weights.update({"score.weight": torch.zeros(2, 16)}))
    refused(folder, "base: the model has no place for the weight score.weight$")
    file.write_bytes(good)
    edit(folder / "config.json", num_hidden_layers=1)
    refused(folder, r"base: the model has no place for the weight model.layers.1.\S+, and 8 more$")
    edit(folder / "config.json", num_hidden_layers=2, intermediate_size=64)
    refused(
        folder, r"base: weight model.layers.0.mlp.down_proj.weight has shape \[16, 32\]; config.json needs \[16, 64\]$"
    )


def test_a_tokenizer_that_does_not_fit_is_refused(tiny, folder):
    larger = build_tokenizer([chr(i) for i in range(ord("a"), ord("z"))])
    save(LanguageModel(tiny.model, larger, ""), Path("larger"))
    refused(Path("larger"), "larger: the tokenizer has a token 28; the model's embedding ends at 22$")
    edit(folder / "tokenizer_config.json", eos_token=None)
    refused(folder, r"base: the tokenizer names no end token \(eos_token\)")
    (folder / "tokenizer.json").write_text("{}")
    refused(folder, "base: not a tokenizer that transformers can read: ")


def test_an_adapter_comes_back_frozen_and_its_base_with_it(tiny, adapter):
    found = load(adapter)
    assert found.name == "adapter"
    assert not found.model.training
    assert not any(weight.requires_grad for name, weight in found.model.named_parameters() if "lora_" in name)
    assert found.tokenizer.get_vocab() == tiny.tokenizer.get_vocab()
    before = load(Path("base"))
    model = add_lora(before.model, r=2, alpha=4.0, targets="all-linear", seed=1)
    randomise(model)
    assert torch.equal(logits(found.model), logits(model))
    assert not torch.equal(logits(found.model), logits(tiny.model))
    with adapter_off(found.model):
        assert torch.equal(logits(found.model), logits(tiny.model))


def test_an_adapter_of_head_and_embedding_comes_back(tiny, folder):
    """peft alone would write both whole embeddings into it."""
    model = add_lora(load(folder).model, r=2, alpha=4.0, targets=["lm_head", "embed_tokens"], seed=1)
    randomise(model)
    save(LanguageModel(model, tiny.tokenizer, ""), Path("adapter"))
    assert len(load_file("adapter/adapter_model.safetensors")) == 4
    assert torch.equal(logits(load(Path("adapter")).model), logits(model))


def test_an_adapter_holds_nothing_but_itself(adapter):
    (adapter / "README.md").write_text("a card")
    save(load(adapter), adapter)
    assert sorted(contents(adapter)) == ["README.md", "adapter_config.json", "adapter_model.safetensors"]
    assert (adapter / "README.md").read_text() == "a card"
    config = json.loads((adapter / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "base"
    # a set in memory, whose order differs from process to process
    assert config["target_modules"] == sorted(config["target_modules"])
    assert len(config["target_modules"]) == 14


def test_the_base_is_looked_up_from_here_then_from_the_adapter_and_may_be_named(adapter, tmp_path, monkeypatch):
    wanted = logits(load(adapter).model)
    Path("elsewhere").mkdir()
    shutil.copytree("base", "other")
    with torch.no_grad():
        other = load(Path("other"))
        other.model.model.norm.weight.mul_(2.0)
    save(other, Path("other"))
    edit(adapter / "adapter_config.json", base_model_name_or_path="../base")
    assert torch.equal(logits(load(adapter).model), wanted)
    edit(adapter / "adapter_config.json", base_model_name_or_path=str(tmp_path / "base"))
    assert torch.equal(logits(load(adapter).model), wanted)
    assert not torch.equal(logits(load(adapter, base=Path("other")).model), wanted)
    edit(adapter / "adapter_config.json", base_model_name_or_path="base")
    monkeypatch.chdir("elsewhere")
    refused(Path("../adapter"), r"\.\./adapter/adapter_config.json: base_model_name_or_path 'base' is no folder")
    assert torch.equal(logits(load(Path("../adapter"), base=Path("../base")).model), wanted)


def test_a_base_outside_the_working_directory_leaves_no_path_behind(adapter, monkeypatch):
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    found = load(Path("../adapter"), base=Path("../base"))
    assert found.name == "adapter"
    found.model.peft_config["default"].base_model_name_or_path = os.path.abspath("../base")
    save(found, Path("copy"))
    assert json.loads(Path("copy/adapter_config.json").read_text())["base_model_name_or_path"] == "base"


def test_an_adapter_of_a_model_that_never_lay_in_a_folder_needs_its_base_named(tiny, folder):
    save(LanguageModel(add_lora(tiny.model, r=1, alpha=1.0, targets=["q_proj"], seed=1), None, ""), Path("a"))
    refused(Path("a"), "a/adapter_config.json: base_model_name_or_path is None; the base must be named explicitly$")
    assert torch.equal(logits(load(Path("a"), base=folder).model), logits(load(folder).model))


def test_adapters_in_folders_of_their_names_are_found(tiny, folder):
    model = get_peft_model(load(folder).model, LoraConfig(r=1, target_modules=["q_proj"], task_type="CAUSAL_LM"), "one")
    model.save_pretrained("single")
    assert not Path("single/adapter_config.json").exists()
    assert load(Path("single")).name == "single/one"
    model.add_adapter("two", LoraConfig(r=1, target_modules=["k_proj"], task_type="CAUSAL_LM"))
    model.save_pretrained("several")
    refused(Path("several"), "several: holds the adapters one, two; name the folder of one of them$")
    shutil.copytree("several/two", "several/default")
    assert load(Path("several")).name == "several/default"
    with pytest.raises(ValueError, match="one adapter of the name 'default' is saved"):
        save(LanguageModel(model, tiny.tokenizer, ""), Path("out"))


def test_adapters_that_do_not_fit_their_base_are_refused(adapter):
    file = adapter / "adapter_model.safetensors"
    good = file.read_bytes()
    first = "base_model.model.model.layers.0.mlp.down_proj.lora_A.weight"
    rewrite(file, lambda weights: weights.pop(first))
    refused(adapter, f"{file}: the model lacks the weight {re.escape(first)}$")
    # peft would write this one over the base's, and the model with adapters off would be another
    file.write_bytes(good)
    rewrite(file, lambda w: w.update({"base_model.model.model.norm.weight": torch.zeros(16)}))
    refused(adapter, f"{file}: the model has no place for the weight base_model.model.model.norm.weight$")
    file.write_bytes(good)
    edit(adapter / "adapter_config.json", r=3)
    refused(adapter, "adapter: this adapter does not fit its base base: ")
    edit(adapter / "adapter_config.json", r=2, base_model_name_or_path="adapter")
    refused(adapter, "adapter: is an adapter itself; the base of an adapter must be a whole model$")
    edit(adapter / "adapter_config.json", base_model_name_or_path="absent/model")
    refused(adapter, "adapter/adapter_config.json: base_model_name_or_path 'absent/model' is no folder")
    edit(adapter / "adapter_config.json", peft_type="NEWEST")
    refused(adapter, "adapter/adapter_config.json: not a configuration that peft can read: ")


def test_adapters_that_lengthen_the_prompt_are_refused(folder):
    config = PrefixTuningConfig(num_virtual_tokens=2, task_type="CAUSAL_LM")
    get_peft_model(load(folder).model, config).save_pretrained("prefix")
    refused(Path("prefix"), "prefix/adapter_config.json: peft_type PREFIX_TUNING adds tokens to the prompt")


def test_the_tokenizer_of_an_adapter_goes_before_that_of_its_base(tiny, adapter):
    build_tokenizer([*"zyxw"]).save_pretrained(adapter)
    assert "z" in load(adapter).tokenizer.get_vocab()


def test_an_adapter_made_by_trl_is_read(tiny, folder):
    trl = pytest.importorskip("trl")
    from datasets import Dataset

    rows = Dataset.from_list([{"prompt": "1+1", "chosen": "=2", "rejected": "=3"}] * 4)
    arguments = trl.DPOConfig(
        output_dir="made", max_steps=2, per_device_train_batch_size=2, learning_rate=0.01, report_to=[], use_cpu=True,
        bf16=False, disable_tqdm=True,
    )  # fmt: skip
    trainer = trl.DPOTrainer(
        model=str(folder),
        args=arguments,
        train_dataset=rows,
        processing_class=tiny.tokenizer,
        peft_config=LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM"),
    )
    trainer.train()
    trainer.save_model("trained")
    for place in ("trained", "made/checkpoint-2"):
        found = load(Path(place))
        assert torch.equal(logits(found.model), logits(trainer.model.eval()))
        assert not torch.equal(logits(found.model), logits(tiny.model))
        with adapter_off(found.model):
            assert torch.equal(logits(found.model), logits(tiny.model))


def test_a_file_that_is_no_gguf_is_refused(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF" + b"\0" * 100)
    with pytest.raises(UserError, match=r"model.gguf: not a language model in GGUF format that can be read: [^\n]+$"):
        read_gguf(tmp_path / "model.gguf")


def test_a_larger_embedding_than_the_vocabulary_is_fine(tiny, tmp_path):
    """Embeddings are often padded to a multiple of 64."""
    smaller = build_tokenizer(["a", "b"])
    model = build_model(tiny.tokenizer, hidden=16, layers=1, heads=2, intermediate=32, seed=1)
    save(LanguageModel(model, smaller, ""), tmp_path / "m")
    assert len(load(tmp_path / "m").tokenizer) == 6
