"""Pinned downloads: an address, a size and a SHA-256, and archives that may not write outside their folder."""

import hashlib
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path, PurePosixPath

from tasks.stage import UserError

ATTEMPTS = 3


def download(url: str, out: Path, *, sha256: str, size: int, pause_s: float = 2.0) -> None:
    """Fetch `url` into `out`; the file exists afterwards only if its size and SHA-256 are the pinned ones.

    Network faults are tried again; a wrong content is not, because it is either an attack or a changed source.

    Raises:
        UserError: no answer after three attempts, or another content than the pinned one.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with urllib.request.urlopen(url, timeout=60) as answer, out.open("wb") as file:
                shutil.copyfileobj(_Limited(answer, size + 1), file)
            break
        except (urllib.error.URLError, OSError) as error:
            out.unlink(missing_ok=True)
            if attempt == ATTEMPTS:
                raise UserError(f"{url}: could not be fetched after {ATTEMPTS} attempts: {error}") from None
            time.sleep(pause_s * attempt)
    found = out.stat().st_size
    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    if found != size or digest != sha256:
        out.unlink()
        what = f"{found} bytes, {size} expected" if found != size else f"SHA-256 {digest}, {sha256} expected"
        raise UserError(f"{url}: not the pinned file: {what}")


class _Limited:
    """A stream that ends after `limit` bytes: a wrong file cannot fill the disk."""

    def __init__(self, stream, limit: int) -> None:
        self.stream, self.left = stream, limit

    def read(self, n: int) -> bytes:
        data = self.stream.read(min(n, self.left))
        self.left -= len(data)
        return data


def download_wheel(requirement: str, out_folder: Path, *, sha256: str) -> Path:
    """Fetch the wheel of a pinned requirement (``name==version``) into a folder and return its path.

    pip asks the package index that the user's own configuration names, compares the SHA-256 and runs no code of the
    package; what the package depends on is not fetched.

    Raises:
        UserError: pip is absent, finds no such wheel, or finds one with another SHA-256. Nothing is kept then.
    """
    with tempfile.TemporaryDirectory() as scratch:
        pins, found = Path(scratch) / "requirements.txt", Path(scratch) / "wheels"
        pins.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
        options = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-input", "--quiet"]
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", *options]
        done = subprocess.run([*pip, "-r", str(pins), "-d", str(found)], capture_output=True, text=True)
        wheels = sorted(found.glob("*.whl")) if found.is_dir() else []
        if done.returncode or len(wheels) != 1:
            raise UserError(f"{requirement}: could not be fetched by pip: {_fault_of_pip(done.stderr)}")
        out_folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(wheels[0], out_folder / wheels[0].name))


def _fault_of_pip(said: str) -> str:
    """One line of many: which hash was wrong, else the last fault, else the last line."""
    if "DO NOT MATCH THE HASHES" in said:
        got = [line.split()[-1] for line in said.splitlines() if line.split()[:1] == ["Got"]]
        return f"not the pinned file: SHA-256 {got[0]}" if got else "not the pinned file: another SHA-256"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    faults = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (faults or lines or ["it said nothing"])[-1]


def extract(archive: Path, members: dict[str, str], folder: Path, *, max_bytes: int = 1 << 26) -> None:
    """Write a few members of a zip archive (`members`: name in the archive → name in the folder) and nothing else.

    Raises:
        UserError: a damaged archive, a member that lacks, or more than `max_bytes` unpacked. Nothing is written then.
    """
    try:
        with zipfile.ZipFile(archive) as file:
            for name in members:
                if name not in file.namelist():
                    raise UserError(f"{archive.name}: there is no member {name!r}")
            if sum(file.getinfo(name).file_size for name in members) > max_bytes:
                raise UserError(f"{archive.name}: unpacks to more than {max_bytes} bytes; refused")
            contents = {target: file.read(name) for name, target in members.items()}
    except zipfile.BadZipFile as error:
        raise UserError(f"{archive.name}: not a readable zip archive: {error}") from None
    folder.mkdir(parents=True, exist_ok=True)
    for target, content in contents.items():
        (folder / target).write_bytes(content)


def unzip(archive: Path, folder: Path, *, max_bytes: int = 1 << 30) -> None:
    """Unpack a zip archive into a new folder.

    Raises:
        UserError: a damaged archive; a member with an absolute path, a drive, `..` or a link; more than `max_bytes`
            unpacked. Nothing is written then.
    """
    try:
        with zipfile.ZipFile(archive) as file:
            members = [m for m in file.infolist() if not m.is_dir()]
            for member in members:
                name = member.filename.replace("\\", "/")
                path = PurePosixPath(name)
                if path.is_absolute() or ".." in path.parts or ":" in name or stat.S_ISLNK(member.external_attr >> 16):
                    raise UserError(
                        f"{archive}: member {member.filename!r} would be written outside its folder; refused"
                    )
            if sum(m.file_size for m in members) > max_bytes:
                raise UserError(f"{archive}: unpacks to more than {max_bytes} bytes; refused")
            damaged = file.testzip()
            if damaged:
                raise UserError(f"{archive}: member {damaged!r} is damaged")
            for member in members:
                target = folder / PurePosixPath(member.filename.replace("\\", "/"))
                target.parent.mkdir(parents=True, exist_ok=True)
                with file.open(member) as source, target.open("wb") as out:
                    shutil.copyfileobj(source, out)
    except zipfile.BadZipFile as error:
        raise UserError(f"{archive}: not a readable zip archive: {error}") from None
