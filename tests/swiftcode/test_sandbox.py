"""The sandbox against hostile and subtle programs: the published collection, and our own."""

import json
import multiprocessing
import os
import random
import time
from pathlib import Path

import psutil
import pytest

from tasks.stage import UserError
from tasks.swiftcode import box as box_module
from tasks.swiftcode import isolation as isolation_module
from tasks.swiftcode.cgroups import places
from tasks.swiftcode.isolation import Isolation, isolation
from tasks.swiftcode.languages import is_available
from tasks.swiftcode.sandbox import CallError, Job, Verdict, box_here, call, judge_many, run
from tests.swiftcode.conftest import shared_folder
from tests.swiftcode.hostile import ECHO, PROGRAMS, SUM

pytestmark = pytest.mark.skipif(not isolation().contained, reason=f"no isolation here: {isolation().fault}")

GENERATED = {
    "p20_huge_int_result.py": [[[6000], 7**6000]],
    "c05_big_output_ok.cpp": [["", "".join(f"{i}\n" for i in range(200_000))]],
}


class Golden:
    """The manifest's programs as jobs."""

    def __init__(self) -> None:
        folder = shared_folder("golden") / "nasty"
        manifest = json.loads((folder / "manifest.json").read_text())
        self.entries = [entry for entry in manifest["programs"] if is_available(entry["language"])]
        self.jobs = []
        for entry in self.entries:
            task = {**entry["task"]}
            task.setdefault("tests", GENERATED.get(entry["file"]))
            source = (folder / entry["file"]).read_bytes().decode("utf-8", "surrogateescape")
            limits = {**manifest["default_limits"], **entry.get("limits", {})}
            self.jobs.append(Job(source, entry["language"], task, limits))

    def faults(self, verdicts: list[Verdict], order: list[int]) -> list[str]:
        found = []
        for place, verdict in zip(order, verdicts, strict=True):
            entry = self.entries[place]
            allowed = [entry["expected_verdict"], *entry.get("also_acceptable", [])]
            if verdict.verdict not in allowed:
                found.append(f"{entry['file']}: {verdict.verdict} ({verdict.message}); allowed: {allowed}")
        return found


@pytest.fixture(scope="module")
def golden() -> Golden:
    return Golden()


@pytest.fixture(scope="module")
def judged(golden: Golden) -> dict[str, Verdict]:
    """All programs in the manifest's order, by file; with a secret in our environment and a look at what we hold."""
    os.environ["SWIFT_TEST_SECRET"] = "1"
    try:
        run("def solve(xs):\n    return sum(xs)\n", "python", SUM)
        before, began = psutil.Process().memory_info().rss, time.monotonic()
        found = {}
        for entry, job in zip(golden.entries, golden.jobs, strict=True):
            begin = time.monotonic()
            found[entry["file"]] = run(*job)
            allowed = job.limits["wall_s"] * len(job.task["tests"]) + 2 + job.limits["compile_wall_s"]
            assert time.monotonic() - begin < allowed, entry["file"]
        assert time.monotonic() - began < 600
        assert psutil.Process().memory_info().rss - before < 50 << 20
    finally:
        del os.environ["SWIFT_TEST_SECRET"]
    return found


def test_every_program_gets_its_verdict(golden, judged):
    assert golden.faults(list(judged.values()), list(range(len(golden.jobs)))) == []


def test_nothing_is_left_behind(judged):
    deadline = time.monotonic() + 1
    while len(inside := _inside()) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(inside) <= 1, inside  # the zygote, which waits for the next candidate
    for place in (places().memory, places().pids, places().cpu):
        assert place is None or not list(place.glob(f"methodworks-{os.getpid()}-*"))
    assert "/house" not in Path("/proc/self/mounts").read_text()
    assert not [
        path
        for path in ("/etc/swift_probe", Path.home() / "swift_probe", "/tmp/swift_probe_escape")
        if Path(path).exists()
    ]


def _inside() -> list[str]:
    process = box_here().process
    if process is None:
        return []
    return [
        " ".join(p.cmdline()) for p in psutil.Process(process.pid).children(recursive=True) if p.status() != "zombie"
    ]


def test_costs_are_measured_from_outside(judged):
    assert judged["p09_fakes_clock.py"].cpu_s >= 0.05 * 3
    assert judged["p28_hides_cpu_in_children.py"].cpu_s >= 0.1
    assert judged["p26_caches_answers.py"].cpu_s >= 0.02
    assert judged["p29_sleeper.py"].wall_s >= 1.2
    assert judged["p29_sleeper.py"].cpu_s < 0.1
    assert judged["p10_memory_bomb.py"].peak_mb == pytest.approx(256, rel=0.02)
    assert judged["p02_swallows_timeout.py"].wall_s < 3 + judged["p02_swallows_timeout.py"].waited_s
    assert all(v.peak_mb > 0 for v in judged.values() if v.verdict == "accepted")


def test_the_secret_of_a_file_does_not_come_out_of_the_compiler(judged):
    assert "root:" not in judged["c04_include_secret.cpp"].message


def test_same_verdicts_in_another_order_with_four_workers_under_load(golden, judged):
    hogs = [multiprocessing.get_context("spawn").Process(target=_hog, daemon=True) for _ in range(os.cpu_count() or 2)]
    for hog in hogs:
        hog.start()
    try:
        order = list(range(len(golden.jobs)))
        random.Random(4).shuffle(order)
        os.environ["SWIFT_TEST_SECRET"] = "1"
        found = judge_many([golden.jobs[place] for place in order], workers=4)
    finally:
        os.environ.pop("SWIFT_TEST_SECRET", None)
        for hog in hogs:
            hog.kill()
    assert golden.faults(found, order) == []
    files = [golden.entries[place]["file"] for place in order]
    changed = [f for f, v in zip(files, found, strict=True) if v.verdict != judged[f].verdict]
    assert set(changed) <= {"p03_fork_bomb.py", "p04_output_flood.py", "p42_huge_result.py"}, (
        changed
    )  # several are right


def _hog() -> None:
    while True:
        pass


def test_order_of_sets_is_the_same_in_every_run(golden):
    place = next(i for i, entry in enumerate(golden.entries) if entry["file"] == "p23_set_order.py")
    job = golden.jobs[place]
    assert {run(*job).verdict for _ in range(20)} == {"accepted"}
    source = "def solve(n):\n    return list({str(i) for i in range(n)})\n"
    first = call(source, "solve", [[50]])
    box_here().close()
    assert call(source, "solve", [[50]]) == first


@pytest.mark.parametrize("name", PROGRAMS)
def test_our_own_programs(name):
    language, source, task, right, limits = PROGRAMS[name]
    if not is_available(language):
        pytest.skip(f"there is no {language} on this machine")
    verdict = run(source, language, task, limits)
    assert verdict.verdict in right, verdict


def test_a_candidate_finds_nothing_of_the_one_before():
    leave = """
import os, ctypes
def solve(xs):
    open('/tmp/left', 'w').write('6')
    open('/dev/shm/left', 'w').write('6')
    ctypes.CDLL(None).shmget(77, 4096, 0o1666)
    os.environ['LEFT'] = '6'
    return sum(xs)
"""
    find = """
import os, ctypes
def solve(xs):
    seen = [os.listdir('/tmp'), os.listdir('/dev/shm'), 'LEFT' in os.environ, ctypes.CDLL(None).shmget(77, 4096, 0o666) != -1]
    if any(seen):
        raise RuntimeError(str(seen))
    return sum(xs)
"""
    assert run(leave, "python", SUM).verdict == "accepted"
    verdict = run(find, "python", SUM)
    assert verdict.verdict == "accepted", verdict


def test_a_box_that_dies_costs_no_verdict():
    assert run("def solve(xs):\n    return sum(xs)\n", "python", SUM).verdict == "accepted"
    box_here().process.kill()
    box_here().process.wait()
    assert run("def solve(xs):\n    return sum(xs)\n", "python", SUM).verdict == "accepted"


def test_a_box_that_always_dies_is_a_harness_error_and_never_wrong(monkeypatch):
    def broken(self, *_):
        raise box_module.HarnessError("no box today")

    monkeypatch.setattr(box_module.Box, "run", broken)
    verdict = run("def solve(xs):\n    return 0\n", "python", SUM)
    assert (verdict.verdict, verdict.message) == ("harness_error", "no box today")


def test_without_isolation_nothing_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(
        isolation_module, "isolation", lambda: Isolation(None, "", "no namespaces", False, False, "no cgroups")
    )
    trace = tmp_path / "trace"
    with pytest.raises(UserError, match=r"cannot be isolated.*no namespaces.*--unsafe-no-sandbox"):
        box_module.Box().run(None)
    assert not trace.exists()


@pytest.fixture
def weak(monkeypatch):
    """A machine without namespaces and cgroups."""
    none = Isolation(None, "", "no namespaces", os.geteuid() == 0, False, "no cgroups")
    monkeypatch.setattr(isolation_module, "isolation", lambda: none)
    from tasks.swiftcode import cgroups, sandbox

    nowhere = cgroups.Places(None, None, None, {})
    for module in (cgroups, box_module):
        monkeypatch.setattr(module, "places", lambda: nowhere)
    monkeypatch.setattr(sandbox._here, "box", None, raising=False)
    yield
    sandbox._here.box.close()
    sandbox._here.box = None


WEAK = [
    "daemon",
    "deep_recursion",
    "exception_that_cannot_be_told",
    "no_newline",
    "reads_and_adds",
    "product_bomb",
    "sleeps_quietly",
]


@pytest.mark.parametrize("name", WEAK)
def test_without_isolation_and_explicitly_allowed_the_supervisor_still_judges(name, weak):
    language, source, task, right, limits = PROGRAMS[name]
    if not is_available(language):
        pytest.skip(f"there is no {language} on this machine")
    verdict = run(source, language, task, limits, unsafe_no_sandbox=True)
    assert verdict.verdict in right, verdict
    if verdict.verdict == "accepted":
        assert verdict.cpu_s > 0
        assert verdict.peak_mb > 0
    assert len(psutil.Process(box_here(True).process.pid).children(recursive=True)) == 0


def test_values_come_back_as_they_are():
    source = "def f(x):\n    return (x, {1: {2}}, b'a', 2 ** 70, float('inf'), None, True)\n"
    assert call(source, "f", [[[1, (2,)]]]) == [([1, (2,)], {1: {2}}, b"a", 2**70, float("inf"), None, True)]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def f(x):\n    raise ValueError('no')\n", "runtime_error: ValueError: no"),
        ("def f(x):\n    return f\n", "of type function"),
        ("def g(x):\n    return 1\n", "there is no 'f'"),
    ],
)
def test_a_call_that_gives_no_value_says_why(source, said):
    with pytest.raises(CallError, match=said):
        call(source, "f", [[1]])


@pytest.mark.parametrize(
    ("task", "language", "limits", "said"),
    [
        ({**SUM, "kind": "other"}, "python", None, "kind 'other' is not one of function, stdio"),
        (SUM, "cobol", None, "language 'cobol' is not one of python"),
        (SUM, "cpp", None, "kind function is for python"),
        ({**SUM, "entry_point": "a b"}, "python", None, "entry_point 'a b' is not the name"),
        ({**SUM, "tests": []}, "python", None, "at least one"),
        ({**SUM, "tests": [[1]]}, "python", None, r"tests\[0\] is not \[input, expected\]"),
        ({**SUM, "tests": [[1, 2]]}, "python", None, r"tests\[0\]: the input of a function is a list"),
        ({**ECHO, "tests": [[1, 2]]}, "python", None, r"tests\[0\]: input and output of a program are texts"),
        ({**SUM, "compare": "fuzzy"}, "python", None, "compare 'fuzzy' is not one of exact, float"),
        ({**SUM, "rtol": -1}, "python", None, "rtol -1 is not a number of at least 0"),
        (SUM, "python", {"cpu_s": 0}, "limits.cpu_s: 0 is not allowed"),
        (SUM, "python", {"cpu": 1}, "limits.cpu: unknown key"),
    ],
)
def test_bad_input_is_named(task, language, limits, said):
    with pytest.raises(UserError, match=said):
        run("", language, task, limits)


def test_a_language_that_is_not_here_is_named(monkeypatch):
    from tasks.swiftcode import languages

    monkeypatch.setattr(languages.shutil, "which", lambda _: None)
    languages.tool_of.cache_clear()
    try:
        with pytest.raises(UserError, match="language rust: there is no rustc on this machine"):
            run("fn main() {}", "rust", ECHO)
    finally:
        languages.tool_of.cache_clear()


@pytest.mark.parametrize("language", ["java", "rust", "cpp", "javascript", "python"])
def test_every_language_adds(language):
    if not is_available(language):
        pytest.skip(f"there is no {language} on this machine")
    sources = {
        "java": "import java.util.*;\npublic class Sum {\n  public static void main(String[] a) {\n    Scanner s = new Scanner(System.in);\n"
        "    long n = s.nextLong(), t = 0;\n    while (n-- > 0) t += s.nextLong();\n    System.out.println(t);\n  }\n}\n",
        "rust": "use std::io::*;\nfn main() {\n    let mut s = String::new();\n    stdin().read_to_string(&mut s).unwrap();\n"
        '    println!("{}", s.split_whitespace().skip(1).map(|x| x.parse::<i64>().unwrap()).sum::<i64>());\n}\n',
        "cpp": PROGRAMS["reads_and_adds"][1],
        "javascript": PROGRAMS["reads_environment"][1],
        "python": PROGRAMS["no_newline"][1],
    }
    assert run(sources[language], language, ECHO).verdict == "accepted"
