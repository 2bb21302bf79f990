"""Pinned downloads from a server on the loopback, and archives with bad intentions."""

import hashlib
import stat
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tasks.sources import download, unzip
from tasks.stage import UserError

CONTENT = b"data" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server():
    """Serves CONTENT after `failures` errors."""

    class Handler(BaseHTTPRequestHandler):
        failures = 0
        served = 0

        def do_GET(self):
            type(self).served += 1
            if self.served <= self.failures:
                self.send_error(503)
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(CONTENT)

        def log_message(self, *_):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_port}/file", Handler
    httpd.shutdown()


@pytest.mark.parametrize("failures", [0, 2])
def test_a_pinned_file_is_fetched_also_after_passing_faults(server, tmp_path, failures):
    url, handler = server
    handler.failures = failures
    download(url, tmp_path / "f", sha256=SHA256, size=len(CONTENT), pause_s=0)
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert handler.served == failures + 1


def test_a_lasting_fault_is_told_and_leaves_no_file(server, tmp_path):
    url, handler = server
    handler.failures = 99
    with pytest.raises(UserError, match=r"could not be fetched after 3 attempts: HTTP Error 503"):
        download(url, tmp_path / "f", sha256=SHA256, size=len(CONTENT), pause_s=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("sha256", "size", "message"),
    [
        ("0" * 64, len(CONTENT), "SHA-256"),
        (SHA256, 10, "11 bytes, 10 expected"),
        (SHA256, 9999, "4000 bytes, 9999 expected"),
    ],
)
def test_other_content_is_refused_and_not_tried_again(server, tmp_path, sha256, size, message):
    url, handler = server
    with pytest.raises(UserError, match=f"not the pinned file: {message}"):
        download(url, tmp_path / "f", sha256=sha256, size=size, pause_s=0)
    assert list(tmp_path.iterdir()) == []
    assert handler.served == 1


def archive(path, members):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members:
            file.writestr(name, content)
    return path


def test_an_archive_is_unpacked(tmp_path):
    unzip(archive(tmp_path / "a.zip", [("sets/iris.arff", "x"), ("b.txt", "y")]), tmp_path / "out")
    assert (tmp_path / "out/sets/iris.arff").read_text() == "x"


@pytest.mark.parametrize("name", ["../evil.txt", "/evil.txt", "a/../../evil.txt", "..\\evil.txt", "C:/evil.txt"])
def test_members_outside_the_folder_are_refused_before_anything_is_written(tmp_path, name):
    bad = archive(tmp_path / "a.zip", [("good.txt", "x"), (name, "y")])
    with pytest.raises(UserError, match="would be written outside its folder"):
        unzip(bad, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.zip"]


def test_links_are_refused(tmp_path):
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(UserError, match="would be written outside"):
        unzip(archive(tmp_path / "a.zip", [(link, "/etc/passwd")]), tmp_path / "out")


def test_a_bomb_and_a_damaged_archive_are_refused(tmp_path):
    with pytest.raises(UserError, match="unpacks to more than 100 bytes"):
        unzip(archive(tmp_path / "a.zip", [("a", "0" * 101)]), tmp_path / "out", max_bytes=100)
    (tmp_path / "b.zip").write_bytes((tmp_path / "a.zip").read_bytes()[:40])
    with pytest.raises(UserError, match="not a readable zip archive"):
        unzip(tmp_path / "b.zip", tmp_path / "out")
    good = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "c.zip").write_bytes(good.replace(b"0" * 50, b"1" * 50))
    with pytest.raises(UserError, match="is damaged"):
        unzip(tmp_path / "c.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()
