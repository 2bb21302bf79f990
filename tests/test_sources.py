"""Pinned downloads from a server on the loopback, and archives with bad intentions."""

import hashlib
import stat
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tasks.sources import download, download_wheel, extract, unzip
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


MEMBERS = {"toy/table.csv": "table.csv", "toy-1.0.dist-info/licenses/LICENSE": "LICENSE"}


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder that pip looks into instead of an index, with the wheel toy 1.0; returns the wheel's SHA-256."""
    folder = tmp_path / "index"
    folder.mkdir()
    about = [
        (
            "toy-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\nRequires-Dist: absent-package\n",
        ),
        ("toy-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
        ("toy-1.0.dist-info/RECORD", ""),
        ("toy-1.0.dist-info/licenses/LICENSE", "free"),
        ("toy/__init__.py", "raise SystemExit('code of the package ran')"),
        ("toy/table.csv", "site,period,count\n"),
    ]
    wheel = archive(folder / "toy-1.0-py3-none-any.whl", about)
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_a_pinned_wheel_is_fetched_and_only_the_wanted_members_leave_it(wheels, tmp_path):
    wheel = download_wheel("toy==1.0", tmp_path / "got", sha256=wheels)
    assert [p.name for p in (tmp_path / "got").iterdir()] == ["toy-1.0-py3-none-any.whl"]
    extract(wheel, MEMBERS, tmp_path / "out")
    assert {p.name: p.read_text() for p in (tmp_path / "out").iterdir()} == {
        "table.csv": "site,period,count\n",
        "LICENSE": "free",
    }


def test_a_wheel_with_another_hash_is_refused(wheels, tmp_path):
    message = f"^toy==1.0: could not be fetched by pip: not the pinned file: SHA-256 {wheels}$"
    with pytest.raises(UserError, match=message):
        download_wheel("toy==1.0", tmp_path / "got", sha256="0" * 64)
    assert not (tmp_path / "got").exists()


def test_a_wheel_that_is_nowhere_is_told_in_one_line(wheels, tmp_path):
    with pytest.raises(UserError, match=r"^toy==2.0: could not be fetched by pip: [^\n]+$") as error:
        download_wheel("toy==2.0", tmp_path / "got", sha256=wheels)
    assert "No matching distribution found" in str(error.value)
    assert not (tmp_path / "got").exists()


@pytest.mark.parametrize(
    ("members", "limit", "message"),
    [
        ({"toy/absent.csv": "x"}, 100, "there is no member 'toy/absent.csv'"),
        (MEMBERS, 20, "unpacks to more than 20 bytes; refused"),
    ],
)
def test_members_that_lack_or_are_too_large_are_refused(wheels, tmp_path, members, limit, message):
    with pytest.raises(UserError, match=f"^toy-1.0-py3-none-any.whl: {message}$"):
        extract(tmp_path / "index/toy-1.0-py3-none-any.whl", members, tmp_path / "out", max_bytes=limit)
    assert not (tmp_path / "out").exists()


def test_damaged_members_are_refused(tmp_path):
    good = archive(tmp_path / "a.zip", [("a", "0" * 100)]).read_bytes()
    (tmp_path / "b.zip").write_bytes(good.replace(b"0" * 50, b"1" * 50))
    with pytest.raises(UserError, match=r"^b.zip: not a readable zip archive: Bad CRC-32"):
        extract(tmp_path / "b.zip", {"a": "a"}, tmp_path / "out")
    assert not (tmp_path / "out").exists()
