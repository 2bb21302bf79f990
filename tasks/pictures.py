"""What the pictures of all methods share: the house style, and PNG files that are the same bytes in every run."""

import shutil
from pathlib import Path


def start():
    """pyplot without a screen and with the house style."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "savefig.dpi": 130})
    return plt


def save(figure, path: Path) -> None:
    """Write a PNG without the version and time that would change its bytes."""
    import matplotlib.pyplot as plt

    figure.savefig(path, bbox_inches="tight", format="png", metadata={"Software": None})
    plt.close(figure)


def take_study(study: Path, figures: Path, captions: dict[str, dict], **caption: str) -> str:
    """Show the picture of a method's study, where there is one, among its figures; return the study's text, or ""."""
    if (study / "study.png").exists():
        shutil.copy(study / "study.png", figures / "study.png")
        captions["study.png"] = caption
    return (study / "study.md").read_text(encoding="utf-8") if (study / "study.md").exists() else ""
