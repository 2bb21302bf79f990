"""Tables and numbers of the report as Markdown, from the metrics."""

from tasks.swiftcode.figures import NAMES, counts_of, generators_of, pairs_of

HOW = {"mean_of_ratios": "mean of ratios", "ratio_of_sums": "ratio of sums"}
COSTS = {"et": "net", "mu": "nmu", "tmu": "ntmu"}


def correctness_table(m: dict) -> str:
    """Answers, what became of them, and pass@k, by model."""
    ks, shown = counts_of(m), generators_of(m)
    verdicts = sorted({key.split(".verdict.")[1] for key in m if ".verdict." in key} - {"accepted"})
    head = [
        "model",
        "answers",
        "correct",
        *(word.replace("_", " ") for word in verdicts),
        "solved",
        *(f"pass@{k}" for k in ks),
    ]
    rows = []
    for g in shown:
        counts = [m[f"{g}.answers"], m[f"{g}.correct"], *(m.get(f"{g}.verdict.{v}", 0) for v in verdicts)]
        solved = f"{m[f'{g}.solved']} of {m['data.units']}"
        rows.append([NAMES[g], *map(str, counts), solved, *(estimate(m, f"{g}.pass.{k}") for k in ks)])
    return table(head, rows)


def costs_table(m: dict) -> str:
    """ET, MU, TMU and their normalised forms by both definitions, by model."""
    head = ["model", "compared"]
    for cost, unit in zip(COSTS, _units_of(m), strict=True):
        head += [f"{cost.upper()} ({unit})", *(f"{COSTS[cost].upper()}, {words}" for words in HOW.values())]
    rows = []
    for g in generators_of(m):
        row = [NAMES[g], str(m[f"{g}.compared"])]
        for cost, normal in COSTS.items():
            row += [number(m.get(f"{g}.{cost}")), *(estimate(m, f"{g}.{normal}.{how}") for how in HOW)]
        rows.append(row)
    return table(head, rows)


def peers_table(m: dict) -> str:
    """Geometric means, wins and the scores of peers, by model."""
    ks = [k for k in counts_of(m) if f"{generators_of(m)[0]}.eff.{k}" in m]
    head = [
        "model",
        "time / reference, geometric mean",
        "time / fastest known",
        "faster, tied, slower",
        "above 5 ×",
        "DPS",
    ]
    head += [*(f"eff@{k}" for k in ks), "Beyond"]
    rows = []
    for g in generators_of(m):
        keys = [f"{g}.dps", *(f"{g}.eff.{k}" for k in ks), f"{g}.beyond"]
        rows.append(
            [
                NAMES[g],
                estimate(m, f"{g}.reference"),
                estimate(m, f"{g}.best"),
                _shares(m, g),
                number(m.get(f"{g}.above_5")),
            ]
            + [estimate(m, key) for key in keys]
        )
    return table(head, rows)


def pairs_table(m: dict) -> str:
    """Paired differences with intervals."""
    ks = counts_of(m)
    head = ["first and second", *(f"pass@{k}, difference" for k in ks), "both solve", "time ratio", "memory ratio"]
    head += ["TMU ratio", "faster, tied, slower", "above 5 ×"]
    rows = []
    for a, b in pairs_of(m):
        where = f"pair.{a}.{b}"
        row = [_pair(a, b), *(estimate(m, f"{where}.pass.{k}", signed=True) for k in ks)]
        row.append(f"{m[f'{where}.overlap']} ({number(m.get(f'{where}.overlap_share'))})")
        row += [estimate(m, f"{where}.{cost}") for cost in ("time", "memory", "tmu")]
        rows.append([*row, _shares(m, where), number(m.get(f"{where}.above_5"))])
    return table(head, rows) if rows else "There are no two models to compare."


def overlap_table(m: dict) -> str:
    """Means of both of a pair on the tasks and languages that both solve; two rows a pair."""
    head = ["first and second", "model", "both solve", "reduction"]
    for cost, unit in zip(COSTS, _units_of(m), strict=True):
        head += [f"{cost.upper()} ({unit})", *(f"{COSTS[cost].upper()}, {words}" for words in HOW.values())]
    rows = []
    for a, b in pairs_of(m):
        where = f"pair.{a}.{b}"
        for name in (a, b):
            row = [_pair(a, b), NAMES[name], str(m[f"{where}.overlap"])]
            row.append(number(m.get(f"{where}.reduction"), signed=True) if name == a else "")
            for cost, normal in COSTS.items():
                mean = "mean_tmu" if cost == "tmu" else cost
                row += [number(m.get(f"{where}.{key}.{name}")) for key in (mean, *(f"{normal}.{how}" for how in HOW))]
            rows.append(row)
    return table(head, rows) if rows else ""


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _units_of(m: dict) -> tuple[str, str, str]:
    return {"instructions": "instructions"}.get(m["data.cost"], "s"), "MB", "MB s"


def _pair(a: str, b: str) -> str:
    return f"{NAMES[a]} and {NAMES[b]}"


def _shares(m: dict, where: str) -> str:
    return " / ".join(number(m.get(f"{where}.{key}")) for key in ("wins", "ties", "losses"))


def estimate(m: dict, key: str, *, signed: bool = False) -> str:
    """A value with its interval.

    >>> estimate({"a": 0.81234, "a.low": 0.79, "a.high": 0.8349}, "a"), estimate({"a": 0.1}, "a", signed=True)
    ('0.812 [0.790, 0.835]', '+0.100')
    """
    value, low, high = (m.get(k) for k in (key, f"{key}.low", f"{key}.high"))
    if value is None or low is None or high is None:
        return number(value, signed=signed)
    return f"{number(value, signed=signed)} [{number(low, signed=signed)}, {number(high, signed=signed)}]"


def number(value: float | None, *, signed: bool = False) -> str:
    """Three significant digits, at most three decimals where below 1, or a dash.

    >>> number(None), number(0.00123), number(0.5), number(12.345), number(123456.0), number(-0.25, signed=True)
    ('–', '0.00123', '0.500', '12.3', '1.23e+05', '−0.250')
    """
    if value is None:
        return "–"
    places = ".3f" if 0.1 <= abs(value) < 1 or value == 0 else "#.3g"
    text = format(value, f"{'+' if signed else ''}{places}").rstrip(".")
    return text.replace("-", "−", 1) if value < 0 else text
