"""Verdicts on all candidates of one task, with those kept that are known."""

import functools
import re
from typing import Any

from tasks.swiftcode.box import HarnessError
from tasks.swiftcode.isolation import isolation
from tasks.swiftcode.languages import version_of
from tasks.swiftcode.ledger import Ledger
from tasks.swiftcode.machine import calibrate
from tasks.swiftcode.params import Limits
from tasks.swiftcode.sandbox import box_here, cache_folder, run
from tasks.swiftcode.values import dumps

# Numbers of seconds, addresses and names of temporary files differ from run to run: the table says what does not.
CHANGING = [(re.compile(r"0x[0-9a-fA-F]{4,}"), "0x…"), (re.compile(r"/tmp/cc\w+"), "/tmp/cc…")]
LIMITS_SAID = {"time_limit": "more time than allowed", "memory_limit": "more memory than allowed"}


def judge_task(
    shared: tuple[Limits, bool], block: tuple[str, dict[str, Any], list[tuple[str, str, str]]]
) -> list[dict]:
    """Rows of VERDICTS for the candidates (language, identity, source) of a task."""
    limits, unsafe_no_sandbox = shared
    name, task, programs = block
    kept = Ledger(cache_folder() / "verdicts", ["verdicts", dumps(task), limits.model_dump(), isolation().contained])
    rows = []
    for language, candidate, source in programs:
        key = [language, version_of(language), source]
        known = kept.get(key)
        if known is None:
            verdict = run(
                source, language, task, scaled(limits, unsafe_no_sandbox), unsafe_no_sandbox=unsafe_no_sandbox
            )
            message = LIMITS_SAID.get(verdict.verdict, verdict.message)
            for pattern, steady in CHANGING:
                message = pattern.sub(steady, message)
            known = {"verdict": verdict.verdict, "test": verdict.test, "message": message}
            if verdict.verdict != "harness_error":
                kept.put(key, known)
        rows.append({"task": name, "language": language, "candidate": candidate, **known})
    return rows


def scaled(limits: Limits, unsafe_no_sandbox: bool) -> Limits:
    """Limits of time for this machine: those of the parameters, or longer by as much as it is slower."""
    factor = max(1.0, _speed(unsafe_no_sandbox))
    return limits.model_copy(update={"cpu_s": limits.cpu_s * factor, "wall_s": limits.wall_s * factor})


@functools.cache
def _speed(unsafe_no_sandbox: bool) -> float:
    try:
        return calibrate(box_here(unsafe_no_sandbox))
    except HarnessError:
        return 1.0
