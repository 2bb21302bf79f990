"""Hostile and subtle programs written for these tests: name → (language, source, task, verdicts that are right, limits)."""

SUM = {"kind": "function", "entry_point": "solve", "tests": [[[[1, 2, 3]], 6], [[[]], 0], [[[-1, 5]], 4]]}
ECHO = {"kind": "stdio", "tests": [["3\n1 2 3\n", "6\n"], ["0\n", "0\n"]], "compare": "tokens"}
SHORT = {"cpu_s": 1.0, "wall_s": 3.0, "memory_mb": 256}

PYTHON = {
    "daemon": (
        """
import os, time
def solve(xs):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    return sum(xs)
""",
        ["accepted"],
    ),
    "thread_left_running": (
        "import threading, time\ndef solve(xs):\n    threading.Thread(target=time.sleep, args=(600,)).start()\n    return sum(xs)\n",
        ["accepted"],
    ),
    "deep_recursion": ("def solve(xs):\n    return solve(xs)\n", ["runtime_error"]),
    "recursion_in_c": (
        "def solve(xs):\n    x = []\n    for _ in range(10**6):\n        x = [x]\n    return x\n",
        ["wrong_answer", "runtime_error"],
    ),
    "circular_result": ("def solve(xs):\n    x = []\n    x.append(x)\n    return x\n", ["wrong_answer"]),
    "disk_full": (
        "def solve(xs):\n    for i in range(1000):\n        open(f'/tmp/f{i}', 'wb').write(bytes(1 << 20))\n    return sum(xs)\n",
        ["memory_limit", "runtime_error"],
    ),
    "large_file": (
        "def solve(xs):\n    open('/tmp/f', 'wb').write(bytes(40 << 20))\n    return sum(xs)\n",
        ["runtime_error"],
    ),
    "many_open_files": (
        "def solve(xs):\n    held = [open('/dev/null') for _ in range(5000)]\n    return sum(xs)\n",
        ["runtime_error"],
    ),
    "forks_to_the_limit": (
        """
import os, time
def solve(xs):
    for _ in range(1000):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    return sum(xs)
""",
        ["process_limit"],
    ),
    "mounts": (
        "import ctypes\ndef solve(xs):\n    ctypes.CDLL(None).mount(b'a', b'/tmp', b'tmpfs', 0, None)\n",
        ["security"],
    ),
    "new_namespace": ("import ctypes\ndef solve(xs):\n    ctypes.CDLL(None).unshare(0x10000000)\n", ["security"]),
    "traces_parent": ("import ctypes\ndef solve(xs):\n    ctypes.CDLL(None).ptrace(16, 1, 0, 0)\n", ["security"]),
    "patches_json": (
        """
import json
def solve(xs):
    json.dumps = lambda *a, **k: '6'
    return 6
""",
        ["wrong_answer"],
    ),
    "patches_builtins": (
        """
import builtins
builtins.isinstance = lambda *a: True
builtins.sum = lambda xs: 6
def solve(xs):
    return sum(xs)
""",
        ["wrong_answer", "runtime_error"],
    ),
    "lying_list": (
        "class L(list):\n    def __iter__(self):\n        return iter([1, 2])\n    def __eq__(self, o):\n        return True\n"
        "def solve(xs):\n    return L([9])\n",
        ["wrong_answer"],
    ),
    "lying_type": ("class T(int):\n    __class__ = int\ndef solve(xs):\n    return T(sum(xs))\n", ["accepted"]),
    "exception_that_cannot_be_told": (
        "class E(Exception):\n    def __str__(self):\n        raise self\ndef solve(xs):\n    raise E\n",
        ["runtime_error"],
    ),
    "keyboard_interrupt": ("def solve(xs):\n    raise KeyboardInterrupt\n", ["runtime_error"]),
    "closes_everything": (
        "import os\ndef solve(xs):\n    os.closerange(0, 4096)\n    return sum(xs)\n",
        ["runtime_error"],
    ),
    "writes_frames": (
        """
import os, struct
def solve(xs):
    for text in ('6', '0', '4'):
        os.write(4, struct.pack('>I', len(text) + 1) + b'R' + text.encode())
    os._exit(0)
""",
        ["runtime_error"],  # the answers are right, but the end is missing
    ),
    "finds_no_answers": (
        """
import gc, sys
def solve(xs):
    frame, found = sys._getframe(), []
    while frame:
        found.append(repr({k: v for k, v in frame.f_locals.items() if 'answer' in k or 'expected' in k}))
        frame = frame.f_back
    return 0 if all(text == '{}' for text in found) and 'expected' not in sys.modules else 6
""",
        ["wrong_answer"],
    ),
    "looks_around": (
        """
import os
def solve(xs):
    seen = [p for p in ('/work', '/home', '/root/.ssh', '/etc/passwd', '/etc/shadow', '/var', '/run', '/sys', '/boot') if os.path.exists(p)]
    others = [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]
    if seen or others:
        raise RuntimeError(f'{seen} {others}')
    return sum(xs)
""",
        ["accepted"],
    ),
    "reads_the_supervisor": (
        "def solve(xs):\n    open('/proc/1/mem', 'rb').read(1)\n    return sum(xs)\n",
        ["runtime_error"],
    ),
    "writes_to_the_house": (
        """
def solve(xs):
    for path in ('/house/zygote.py', '/job/x', '/x', '/usr/x', '/site/x', '/dev/x', '/proc/sys/kernel/hostname'):
        try:
            open(path, 'w').write('x')
        except OSError:
            continue
        raise RuntimeError(path)
    return sum(xs)
""",
        ["accepted"],
    ),
    "true_is_not_one": ("def solve(xs):\n    return True\n", ["wrong_answer"]),
    "text_is_not_number": ("def solve(xs):\n    return str(sum(xs))\n", ["wrong_answer"]),
    "numpy_number": ("import numpy\ndef solve(xs):\n    return numpy.int64(sum(xs))\n", ["accepted"]),
    "changes_arguments": ("def solve(xs):\n    total = sum(xs)\n    xs.clear()\n    return total\n", ["accepted"]),
    "main_guard": (
        "def solve(xs):\n    return sum(xs)\nif __name__ == '__main__':\n    raise SystemExit(3)\n",
        ["accepted"],
    ),
    "exit_function": ("def solve(xs):\n    exit()\n", ["runtime_error"]),
    "empty_program": ("", ["runtime_error"]),
    "compile_bomb": ("def solve(xs):\n    return " + "(" * 5000 + ")" * 5000 + "\n", ["compile_error"]),
    "constant_bomb": ("x = 2 ** (10 ** 10)\ndef solve(xs):\n    return sum(xs)\n", ["time_limit", "memory_limit"]),
    "product_bomb": (
        "import itertools\ndef solve(xs):\n    return list(itertools.product('abc', repeat=40))\n",
        ["memory_limit", "time_limit"],
    ),
}
SCRIPTS = {
    "script_ok": (
        "input()\nprint(sum(map(int, (input() if True else '').split())))\n",
        ["runtime_error"],
    ),  # no second line
    "prints_the_answer_and_dies": ("print(6)\nraise SystemExit(1)\n", ["runtime_error"]),
    "atexit_prints": (
        "import atexit\natexit.register(lambda: print(6))\n",
        ["wrong_answer"],
    ),  # right for the first test
    "waits_for_input": ("import sys\nsys.stdin.read()\nsys.stdin.read()\nprint(6)\n", ["wrong_answer"]),
    "no_newline": (
        "import sys\nd = sys.stdin.read().split()\nsys.stdout.write(str(sum(map(int, d[1:]))))\n",
        ["accepted"],
    ),
    "sleeps_quietly": ("import time\ntime.sleep(60)\n", ["time_limit"]),
}
OTHER = {
    "stack_overflow": (
        "cpp",
        "int f(int n) { volatile int a[1000]; a[0] = n; return f(n + 1) + a[0]; }\nint main() { return f(0); }\n",
        ["runtime_error"],
    ),
    "undefined_name": ("cpp", "int main() { return x; }\n", ["compile_error"]),
    "template_bomb": (
        "cpp",
        "template <int N> struct A { static const long v = A<N - 1>::v + A<N - 2>::v; };\nint main() { return A<100000>::v; }\n",
        ["compile_error"],
    ),
    "include_device": ("cpp", '#include "/dev/zero"\nint main() {}\n', ["compile_error"]),
    "forks_in_c": (
        "cpp",
        "#include <unistd.h>\nint main() { for (;;) fork(); }\n",
        ["time_limit", "process_limit", "runtime_error"],
    ),
    "reads_and_adds": (
        "cpp",
        "#include <iostream>\nint main() { long n, x, s = 0; std::cin >> n; while (n-- && std::cin >> x) s += x; std::cout << s; }\n",
        ["accepted"],
    ),
    "throws": ("javascript", "throw new Error('no');\n", ["runtime_error"]),
    "syntax": ("javascript", "let = ;\n", ["runtime_error"]),
    "reads_environment": (
        "javascript",
        "const e = Object.keys(process.env); const d = require('fs').readFileSync(0, 'utf8').split(/\\s+/).map(Number);\n"
        "if (e.some(k => /KEY|TOKEN|SECRET/.test(k))) throw 1;\nconsole.log(d.slice(1).reduce((a, b) => a + b, 0));\n",
        ["accepted"],
    ),
    "prints_for_ever": (
        "javascript",
        "const s = 'x'.repeat(1 << 16); for (;;) console.log(s);\n",
        ["output_limit", "time_limit", "memory_limit"],
    ),
}

PROGRAMS = (
    {name: ("python", source, SUM, right, SHORT) for name, (source, right) in PYTHON.items()}
    | {name: ("python", source, ECHO, right, SHORT) for name, (source, right) in SCRIPTS.items()}
    | {name: (language, source, ECHO, right, SHORT) for name, (language, source, right) in OTHER.items()}
)
