"""The stages of the toy methods, ``python steps.py NAME OUTPUT…``; files in ``orders/`` make them misbehave."""

import json
import os
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import yaml

name, *outputs = sys.argv[1:]
parameters = yaml.safe_load(Path("params.yaml").read_text())["toy"]
orders = Path(os.environ.get("TOY_ORDERS", "orders"))
begin = time.time()


def order(what: str) -> Path:
    return orders / f"{what}-{name}"


if order("hang").exists():  # with a child in this session and a grandchild in a session of its own
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    subprocess.Popen(sleep)
    subprocess.Popen(sleep, start_new_session=True)
    order("hanging").write_text(str(os.getpid()))
    time.sleep(600)
if order("fail").exists():
    sys.exit(f"error: toy.{name}: column label: 7 rows are bad")
if order("flaky").exists():  # fails once
    order("flaky").unlink()
    sys.exit("error: no network")
time.sleep(1.5 if order("slow").exists() else 0)


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


rule = {"rule": "column values unique", "column": "task", "success": True}
rate = parameters["train"]["rate"]
contents = {
    "ingest": Path(parameters["ingest"]["path"]).read_text().strip() + "\n",
    "train-a": f"a {rate}\n",
    "train-b": f"b {rate}\n",
    "check": json.dumps({"suite": "toy", "success": True, "tables": [{"table": "m", "rows": 2000, "rules": [rule]}]}),
    "evaluate": json.dumps({"accuracy": rate, "nested": {"low": 0.1}}),
    "plot": png(),
}
for output in map(Path, outputs):
    output.parent.mkdir(parents=True, exist_ok=True)
    content = contents.get(name, name)
    output.write_bytes(content if isinstance(content, bytes) else content.encode())
if order("times").parent.exists():
    order("times").write_text(json.dumps([begin, time.time()]))
print(f"{name} is done, processes: {os.environ.get('METHODWORKS_WORKERS')}")
