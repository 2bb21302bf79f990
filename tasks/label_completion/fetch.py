"""Stage: fetch a public archive of data sets in CEKA's formats."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tasks import sources, stage
from tasks.stage import UserError

# The authors' archive (four real and 34 tables): no licence is stated, so it is never fetched unless asked for.
ARCHIVES = {
    "ldplc": {
        "url": "https://github.com/jiangliangxiao/LDPLC/raw/24bb7341c4af611f16c571215470ef196324a838/"
        "code%20and%20datasets.zip",
        "sha256": "50e5fb9143da33079d0602d0de37bd7d86e806f48e066b6a578901328c0c73fa",
        "size": 3_334_519,
    }
}


@stage.command(None)
def fetch(name: str, *, out: Path) -> None:
    """Download a pinned archive and unpack it; its folders can then be named in params.yaml: label_completion.ingest."""
    if name not in ARCHIVES:
        raise UserError(f"archive {name!r} is not one of {', '.join(ARCHIVES)}")
    with TemporaryDirectory(dir=out.parent, suffix=".partial") as folder:
        archive = Path(folder) / "archive.zip"
        sources.download(ARCHIVES[name]["url"], archive, sha256=ARCHIVES[name]["sha256"], size=ARCHIVES[name]["size"])
        out.mkdir()
        sources.unzip(archive, out)


if __name__ == "__main__":
    fetch.run()
