"""The archive stage against a server on the loopback."""

import hashlib
import io
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tasks.label_completion import fetch
from tasks.stage import UserError


@pytest.fixture
def archive(monkeypatch):
    """A pinned archive `ldplc` that is served here; returns its pin."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("real-world/leaves/leaves.gold.txt", "0\t3\n")
    content = content.getvalue()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    pin = {
        "url": f"http://127.0.0.1:{httpd.server_port}/a.zip",
        "sha256": hashlib.sha256(content).hexdigest(),
        "size": len(content),
    }
    monkeypatch.setitem(fetch.ARCHIVES, "ldplc", pin)
    yield pin
    httpd.shutdown()


def test_the_archive_is_unpacked_and_nothing_else_is_left(archive, tmp_path):
    fetch.fetch("ldplc", out=tmp_path / "ldplc")
    assert (tmp_path / "ldplc/real-world/leaves/leaves.gold.txt").read_text() == "0\t3\n"
    assert [p.name for p in tmp_path.iterdir()] == ["ldplc"]


def test_another_content_is_refused_and_leaves_nothing(archive, tmp_path):
    archive["sha256"] = "0" * 64
    with pytest.raises(UserError, match="not the pinned file: SHA-256"):
        fetch.fetch("ldplc", out=tmp_path / "ldplc")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_archive_is_named(tmp_path):
    with pytest.raises(UserError, match="archive 'other' is not one of ldplc"):
        fetch.fetch("other", out=tmp_path / "x")


def test_the_pin_is_the_published_one():
    pin = fetch.ARCHIVES["ldplc"]
    assert pin["sha256"] == "50e5fb9143da33079d0602d0de37bd7d86e806f48e066b6a578901328c0c73fa"
    assert pin["size"] == 3_334_519
