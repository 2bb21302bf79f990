"""Seventeen faults that users of other harnesses reported in public; what happens here instead."""

import resource
import subprocess
import sys

import pytest

from tasks.stage import UserError
from tasks.swiftcode import judging
from tasks.swiftcode.estimates import costs
from tasks.swiftcode.isolation import isolation
from tasks.swiftcode.languages import is_available
from tasks.swiftcode.params import Limits
from tasks.swiftcode.sandbox import box_here, run
from tests.swiftcode.hostile import ECHO, PROGRAMS, SUM
from tests.swiftcode.measured import measured

pytestmark = pytest.mark.skipif(not isolation().contained, reason=f"no isolation here: {isolation().fault}")

SHORT = {"cpu_s": 1.0, "wall_s": 4.0, "memory_mb": 256}
RIGHT = "def solve(xs):\n    return sum(xs)\n"


def verdict(source: str, task=SUM, language="python", **limits) -> str:
    return run(source, language, task, {**SHORT, **limits}).verdict


def test_1_c_code_that_serves_no_signal_is_ended():  # evalplus#294
    source = "import itertools\ndef solve(xs):\n    return len(list(itertools.product(range(50), repeat=20)))\n"
    assert verdict(source) in ("memory_limit", "time_limit")


def test_2_limits_grow_on_a_slow_machine(monkeypatch):  # evalplus#5
    monkeypatch.setattr(judging, "_speed", lambda *_: 3.0)
    assert judging.scaled(Limits(cpu_s=0.05, wall_s=1.0), False).cpu_s == pytest.approx(0.15)
    monkeypatch.setattr(judging, "_speed", lambda *_: 0.5)
    assert judging.scaled(Limits(cpu_s=0.05, wall_s=1.0), False).cpu_s == 0.05


def test_3_a_time_out_cannot_be_caught():  # CWEval#15, ENAMEL
    source = "def solve(xs):\n    while True:\n        try:\n            while True:\n                pass\n        except BaseException:\n            pass\n"
    assert verdict(source) == "time_limit"


def test_4_nothing_runs_on_hours_later():  # bigcode-evaluation-harness#290
    import psutil

    assert verdict(PROGRAMS["daemon"][1]) == "accepted"
    inside = psutil.Process(box_here().process.pid).children(recursive=True)
    assert len(inside) <= 1


def test_5_workers_that_create_workers_end_at_the_limit():  # bigcodebench#120
    assert verdict(PROGRAMS["forks_to_the_limit"][1]) == "process_limit"
    assert verdict(RIGHT) == "accepted"


def test_6_standard_streams_are_real():  # AISBench#518, lighteval#1255, opencompass#2393, evalscope#1438
    source = (
        "import sys\nd = sys.stdin.buffer.read().split()\nsys.stdout.buffer.write(b'%d\\n' % sum(map(int, d[1:])))\n"
    )
    assert verdict(source, ECHO) == "accepted"
    assert (
        verdict(
            "import sys\nsys.stdin.reconfigure(encoding='ascii')\nprint(sum(map(int, sys.stdin.read().split()[1:])))\n",
            ECHO,
        )
        == "accepted"
    )


def test_7_four_kinds_of_right_answers():  # NeMo-Gym#2956, LiveCodeBench#133, #129
    decimals = {"kind": "stdio", "tests": [["", "0.3 1.50\n"]], "compare": "float"}
    assert verdict("print(0.1 + 0.2, 1.5)", decimals) == "accepted"
    long = {"kind": "function", "entry_point": "f", "tests": [[[20_000], 3**20_000]]}
    assert verdict("def f(n):\n    return 3 ** n\n", long) == "accepted"
    assert verdict("def f(n):\n    return {3 ** n: [3 ** n]}\n", long) == "wrong_answer"  # no decimal text of it needed
    printed = {"kind": "stdio", "tests": [["", "1" + "0" * 6000]]}
    assert verdict("print(10 ** 6000)\n", printed) == "accepted"
    floats = {"kind": "function", "entry_point": "f", "tests": [[[], [0.3, 1.0]]], "compare": "float"}
    assert verdict("def f():\n    return [0.1 + 0.2, sum([0.1] * 10)]\n", floats) == "accepted"
    assert (
        verdict("import sys\ndef f():\n    sys.stdout.buffer.write(b'x')\n    return [0.3, 1]\n", floats) == "accepted"
    )


def test_8_a_memory_limit_does_not_break_numpy():  # SandboxFusion#45, numpy#18141, OpenBLAS#4762, #3436
    source = "import numpy\ndef solve(xs):\n    return int(numpy.sum(numpy.array(xs, dtype=int)))\n"
    assert verdict(source, memory_mb=128) == "accepted"


def test_9_output_is_read_as_it_comes_and_bounded():  # judge0#496, code-golf#201, sinol-make#146
    chatty = "import sys\ndef solve(xs):\n    print('x' * 300_000)\n    print('y' * 300_000, file=sys.stderr)\n    return sum(xs)\n"
    assert verdict(chatty) == "accepted"
    assert verdict("def solve(xs):\n    while True:\n        print('x' * 65536)\n") == "output_limit"
    printed = {"kind": "stdio", "tests": [["", "7\n" * 100_000]], "compare": "tokens"}
    assert verdict("for _ in range(100_000):\n    print(7)\n", printed) == "accepted"


def test_10_objects_and_frameworks_that_lie():  # codewars.com#1970, #3083, #2448, codewars-runner-cli#749
    equal = "class E:\n    def __eq__(self, other):\n        return True\ndef solve(xs):\n    return E()\n"
    assert verdict(equal) == "wrong_answer"
    assert verdict(PROGRAMS["patches_json"][1]) == "wrong_answer"


@pytest.mark.parametrize("end", ["import sys; sys.exit(0)", "import os; os._exit(0)", "quit()", "raise SystemExit"])
def test_11_a_silent_end_is_no_success(end):  # pdd#605, EffiCoder
    assert verdict(f"{end}\n") == "runtime_error"
    assert verdict(f"def solve(xs):\n    {end}\n") == "runtime_error"


def test_12_secrets_stay_outside(monkeypatch):  # judge0#564, DMOJ#318, compiler-explorer#6026, CVE-2024-28185
    monkeypatch.setenv("SWIFT_TEST_SECRET", "1")
    look = "import os\ndef solve(xs):\n    if any('SECRET' in k for k in os.environ):\n        raise RuntimeError\n    return sum(xs)\n"
    assert verdict(look) == "accepted"
    if is_available("cpp"):
        found = run('#include "/etc/passwd"\nint main() {}\n', "cpp", ECHO, SHORT)
        assert found.verdict == "compile_error"
        assert "root:" not in found.message
    link = "import os\nos.symlink('/etc/passwd', '/tmp/program')\ndef solve(xs):\n    return sum(xs)\n"
    assert verdict(link) == "accepted"


def test_13_a_cost_of_zero_is_an_error():  # isolate#170, #134, #56, EffiBench-X#4
    for column in ("cpu_s", "peak_mb"):
        table = measured({"a": {"x": 0.1, "y": 0.2}})
        table.loc[table.index[-1], column] = 0.0
        with pytest.raises(UserError, match=column):
            costs(table, seed=1)
    found = run(RIGHT, "python", SUM, SHORT)
    assert found.cpu_s > 0
    assert found.peak_mb > 0


def test_14_without_counters_there_is_another_way(monkeypatch):  # Cirron#14, moby#43163
    from tasks.swiftcode import box, cgroups

    nowhere = cgroups.Places(None, None, None, {})
    for module in (cgroups, box):
        monkeypatch.setattr(module, "places", lambda: nowhere)
    box_here().close()
    found = run("def solve(xs):\n    for _ in range(10**6):\n        pass\n    return sum(xs)\n", "python", SUM, SHORT)
    box_here().close()
    assert found.verdict == "accepted"
    assert found.cpu_s > 0.02
    assert found.peak_mb > 0


def test_15_a_candidate_cannot_starve_who_judges_it():  # E2B#412
    bomb = "def solve(xs):\n    held = []\n    while True:\n        held.append(bytearray(1 << 20))\n"
    for _ in range(3):
        assert verdict(bomb) == "memory_limit"
        assert verdict(RIGHT) == "accepted"


def test_16_limits_that_the_machine_refuses_do_not_fail_good_programs():  # cpython#142317, evalplus on macOS
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 16 << 20))\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))\n"
        "from tasks.swiftcode.sandbox import run\n"
        f"print(run({RIGHT!r}, 'python', {SUM!r}).verdict)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "accepted\n"
    assert resource.getrlimit(resource.RLIMIT_STACK)[1] != 16 << 20


def test_17_a_fault_of_the_harness_is_no_wrong_answer(monkeypatch):  # NeMo-Gym#2015
    from tasks.swiftcode import box

    calls = []

    def fails_twice(self, *arguments):
        calls.append(1)
        if len(calls) < 3:
            raise box.HarnessError("no memory for a process")
        return original(self, *arguments)

    original = box.Box.run
    monkeypatch.setattr(box.Box, "run", fails_twice)
    assert verdict(RIGHT) == "accepted"
    assert len(calls) == 3
    monkeypatch.setattr(box.Box, "run", lambda *_: (_ for _ in ()).throw(box.HarnessError("no")))
    assert verdict(RIGHT) == "harness_error"
