"""Stage: fetch a public data set that is published inside a Python package."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tasks import sources, stage
from tasks.stage import UserError

# Only these members leave the wheel; no code of it runs.
PACKAGES = {
    "champ-dataset": {
        "requirement": "champ-dataset==1.0.0",
        "sha256": "aa59df5ae28e2ec76a401a46faf3d6395920be8009a01ce451f7d5c131d82201",
        "data": "champ_dataset/dataset_files/v0.json",
        "licence": "champ_dataset-1.0.0.dist-info/LICENSE",
    }
}
LARGEST = 1 << 27  # bytes of the data, unpacked


@stage.command(None)
def fetch(package: str, *, out: Path) -> None:
    """Download a pinned wheel from the user's package index and keep its annotated solutions and its licence.

    ``solutions.jsonl`` has the columns that `responses` reads: `problem`, `prompt` (the problem's text), `response`,
    `correct` (no step is marked as wrong; nobody graded the answers) and `first_wrong` (the first character of what is
    marked, else -1); and `category`, `reference_answer`, `model`, `request` and `last_wrong` (the character after what
    is marked) for whoever wants them.
    """
    import json

    from tasks.prm.champ import solutions

    if package not in PACKAGES:
        raise UserError(f"package {package!r} is not one of {', '.join(PACKAGES)}")
    pin = PACKAGES[package]
    with TemporaryDirectory() as folder:
        wheel = sources.download_wheel(pin["requirement"], Path(folder), sha256=pin["sha256"])
        members = {pin["data"]: "data.json", pin["licence"]: "LICENSE"}
        sources.extract(wheel, members, Path(folder), max_bytes=LARGEST)
        rows = solutions(json.loads((Path(folder) / "data.json").read_text(encoding="utf-8")))
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        out.mkdir()
        (out / "solutions.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")
        (out / "LICENSE").write_bytes((Path(folder) / "LICENSE").read_bytes())


if __name__ == "__main__":
    fetch.run()
