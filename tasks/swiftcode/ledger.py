"""Results of finished work on disk, so that a run that was killed goes on where it was: a file a task, a line a result."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any


class Ledger:
    """Results by key, kept in one file of JSON lines. A line that was not completely written is as if it had not been.

    Args:
        folder: where the files of this kind of work lie.
        name: what the file is about; everything that its results depend on must be in it or in the keys.
    """

    def __init__(self, folder: Path, name: Any) -> None:
        self.file = folder / f"{digest(name)}.jsonl"
        self.held: dict[str, Any] = {}
        if self.file.is_file():
            for line in self.file.read_bytes().splitlines():
                try:
                    entry = json.loads(line)
                    self.held[entry["key"]] = entry["value"]
                except (ValueError, KeyError, TypeError):
                    continue

    def get(self, key: Any) -> Any | None:
        """What was kept under a key; None where there is nothing."""
        return self.held.get(digest(key))

    def put(self, key: Any, value: Any) -> None:
        """Keep a JSON value; on disk before this returns."""
        name = digest(key)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"key": name, "value": value}, allow_nan=False)
        with self.file.open("ab") as file:
            file.write(f"\n{line}\n".encode())  # a line of its own even after one that was cut off
            file.flush()
            os.fsync(file.fileno())
        self.held[name] = value


def digest(content: Any) -> str:
    """SHA-256 of a JSON value."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
