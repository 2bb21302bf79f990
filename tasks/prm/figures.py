"""Pictures of the evaluation; metrics and tables in, PNG files out."""

from pathlib import Path

import numpy as np
import pandas as pd

from tasks.pictures import save, start
from tasks.prm.evaluation import ROLES
from tasks.prm.scored import CONTROL, Responses

LOSSES = {"ce": "CE", "dpo": "DPO", "nca": "NCA", "kto": "KTO"}
AGGREGATIONS = {
    "min": "lowest step",
    "sum": "sum of steps",
    "mean": "mean of steps",
    "last": "last step",
    "prefix_min": "lowest prefix",
}
REFERENCE = {"policy": "without reference", "ratio": "with reference"}
MOST_CELLS, MOST_LETTERS = 10, 96  # of an example


def scorer_name(scorer: str) -> str:
    """A scorer, or a baseline of localisation, in words.

    >>> scorer_name("ce.policy"), scorer_name("nca.ratio"), scorer_name("reference")
    ('CE, without reference', 'NCA, with reference', 'untrained reference')
    """
    loss, _, kind = scorer.partition(".")
    if kind:
        return f"{LOSSES[loss]}, {REFERENCE[kind]}"
    words = {"position": "position (later is worse)", "length": "length (longer is worse)", "chance": "guess at random"}
    return {CONTROL: "untrained reference", "first_step": "always the first step", **words}[scorer]


def candidate_name(candidate: str) -> str:
    """A candidate in words.

    >>> candidate_name("ce.policy.prefix_min")
    'CE, without reference, lowest prefix'
    """
    scorer, how = candidate.rsplit(".", 1)
    return f"{scorer_name(scorer)}, {AGGREGATIONS[how]}"


def sizes_of(metrics: dict, split: str = "test") -> list[int]:
    """The numbers n of candidates that the metrics hold."""
    prefix = f"{split}.problems."
    return sorted(int(key.removeprefix(prefix)) for key in metrics if key.startswith(prefix))


def curves_of(metrics: dict) -> dict[str, str]:
    """{what `accuracy` draws against n: its key up to the number, with {} in the number's place}."""
    found = {"any of n is right (pass@n): the ceiling": "test.pass.{}"}
    if metrics.get("choice.prm"):
        found[f"vote weighted by {candidate_name(metrics['choice.prm'])}"] = f"test.vote.{{}}.{metrics['choice.prm']}"
        for role, words in zip(ROLES, ("PRM", "PRM", "control"), strict=True):
            candidate = metrics[f"choice.{role}"]
            found[f"best of n by {words}: {candidate_name(candidate)}"] = f"test.best_of.{{}}.{candidate}"
    return found | {"majority": "test.majority.{}"}


def accuracy(metrics: dict[str, dict], path: Path, confidence: float) -> None:
    """Accuracy against the number of candidates, with intervals, a panel per data set."""
    plt = start()
    colours = {"ceiling": "grey", "vote": "C4", "without": "C0", "with": "C1", "control": "C3", "majority": "black"}
    fig, axes = plt.subplots(len(metrics), 1, figsize=(9.2, 3.9 * len(metrics) + 0.5), squeeze=False)
    for axis, (name, values) in zip(axes[:, 0], metrics.items(), strict=True):
        sizes = sizes_of(values)
        drawn = curves_of(values)
        kinds = list(colours) if len(drawn) == len(colours) else ["ceiling", "majority"]
        places = np.arange(len(sizes))
        for kind, (label, key) in zip(kinds, drawn.items(), strict=True):
            shift = 0.05 * (kinds.index(kind) - (len(kinds) - 1) / 2)  # so that intervals do not hide each other
            keys = [key.format(n) if n > 1 else "test.pass.1" for n in sizes]
            center, low, high = (_values(values, [k + end for k in keys]) for end in ("", ".low", ".high"))
            bars = np.nan_to_num([center - low, high - center])
            style = {"ls": "--" if kind in ("ceiling", "majority") else "-", "color": colours[kind], "label": label}
            axis.errorbar(places + shift, center, yerr=bars, marker="o", ms=3.5, capsize=2.5, lw=1.2, **style)
        axis.axhline(values["test.pass.1"], color="grey", ls=":", lw=1, label="one response (pass@1)")
        axis.set_xticks(places, [f"{n}\n({values[f'test.problems.{n}']})" for n in sizes])
        axis.set_title(name)
        axis.set_xlabel("n, responses to choose from (test problems that have so many)")
        axis.set_ylabel("accuracy (share of problems)")
        axis.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    fig.suptitle(f"Right answers on the test problems, with {confidence:.0%} intervals over problems")
    fig.tight_layout()
    save(fig, path)


def examples(responses: Responses) -> list[tuple[str, int]]:
    """(what it is, index of the response): the first of each kind in the order of problems and samples, a problem once.

    Kinds: wholly right, two with a wrong step and a wrong answer, a right answer with a wrong step. Where nobody knows
    the steps: a right answer and a wrong one.
    """
    judged, wrong, correct = responses.judged, responses.first_wrong >= 0, responses.correct
    asked = [
        ("every step right", judged & ~wrong & correct),
        ("wrong step, wrong answer", judged & wrong & ~correct),
        ("wrong step, wrong answer", judged & wrong & ~correct),
        ("wrong step, right answer", judged & wrong & correct),
    ]
    if not judged.any():
        asked = [("right answer", correct), ("wrong answer", ~correct)]
    found: list[tuple[str, int]] = []
    for words, mask in asked:
        free = mask & ~np.isin(responses.problem, [responses.problem[i] for _, i in found])
        if free.any():
            found.append((words, int(np.argmax(free))))
    return found


def strips(
    name: str, responses: Responses, scorer: str, threshold: float | None, prompts: dict[str, str], path: Path
) -> None:
    """Example responses, a coloured cell per step: its text and its reward.

    Args:
        scorer: of the rewards.
        threshold: where the colours turn from blue to red; None: in the middle of the rewards.
        prompts: by problem.
    """
    plt = start()
    shown = examples(responses)
    steps, rewards = responses.rewards(scorer)
    scale, colours = _scale(plt, rewards[np.isfinite(rewards)], threshold), plt.get_cmap("RdYlBu")
    heights = [min(int(steps.lengths[i]), MOST_CELLS) + 1.6 for _, i in shown]
    size = 9.8, 0.27 * sum(heights) + 1.1
    fig, axes = plt.subplots(len(shown), 1, figsize=size, height_ratios=heights, squeeze=False, layout="constrained")
    for axis, (words, i) in zip(axes[:, 0], shown, strict=True):
        mine = np.flatnonzero(steps.response == i)
        first_wrong = int(responses.wrong_step(steps)[i]) if responses.judged[i] else -1
        begin = max(0, min(first_wrong - MOST_CELLS + 3, len(mine) - MOST_CELLS))  # the first wrong one is in sight
        cells = mine[begin : begin + MOST_CELLS]
        for row, step in enumerate(cells):
            said = _short(responses.texts[i][steps.start_char[step] : steps.end_char[step]])
            _cell(plt, axis, row, said, rewards[step], colours(scale(rewards[step])), begin + row == first_wrong)
        hidden = f"  (steps {begin + 1} to {begin + len(cells)} of {len(mine)})" if len(cells) < len(mine) else ""
        prompt = _short(prompts[responses.problems[responses.problem[i]]])
        axis.set_title(f"{words}: {prompt}{hidden}", loc="left", fontsize=8.5, parse_math=False)
        axis.set_xlim(0, 1.17)
        axis.set_ylim(-len(cells), 0)
        axis.set_axis_off()
    bar = fig.colorbar(plt.cm.ScalarMappable(scale, colours), ax=axes, shrink=0.8, pad=0.01)
    bar.set_label("reward of the step (nats × beta)" if scorer != CONTROL else "log-probability of the step (nats)")
    if threshold is not None:
        bar.ax.axhline(threshold, color="black", lw=1.5)
    bar.solids.set_alpha(0.6)
    fig.suptitle(f"{name}: rewards of the steps by {scorer_name(scorer)}")
    save(fig, path)


def _scale(plt, rewards: np.ndarray, threshold: float | None):
    """From the lowest twentieth, so that a few very low rewards do not hide the rest, to the highest."""
    from matplotlib.colors import TwoSlopeNorm

    low, high = np.quantile(rewards, [0.05, 1.0]) if len(rewards) else (0.0, 1.0)
    if threshold is not None and low < threshold < high:
        return TwoSlopeNorm(threshold, low, high)
    return plt.Normalize(low, high if high > low else low + 1)


def _cell(plt, axis, row: int, text: str, reward: float, colour, is_first_wrong: bool) -> None:
    known = np.isfinite(reward)
    frame = {"fc": colour if known else "white", "ec": "black" if is_first_wrong else "none"}
    axis.add_patch(plt.Rectangle((0, -row - 0.95), 1, 0.9, alpha=0.6, lw=1.6, **frame))
    number = f"{reward:.2f}".replace("-0.00", "0.00").replace("-", "−") if known else "–"
    axis.text(0.008, -row - 0.52, text, va="center", fontsize=8, parse_math=False)
    axis.text(0.99, -row - 0.52, number, va="center", ha="right", fontsize=8)
    if is_first_wrong:
        axis.text(1.005, -row - 0.52, "◂ first wrong step", va="center", fontsize=8)


def kinds(responses: dict[str, Responses], scorers: dict[str, list[str]], metrics: dict[str, dict], path: Path) -> None:
    """Distributions of the rewards of right and of first wrong steps, a row of panels per data set, a panel per scorer."""
    plt = start()
    columns = max(map(len, scorers.values()))
    size = 3.4 * columns, 2.8 * len(responses) + 0.8
    fig, axes = plt.subplots(len(responses), columns, figsize=size, squeeze=False)
    for row, (name, found) in zip(axes, responses.items(), strict=True):
        for axis, scorer in zip(row, scorers[name], strict=False):
            rewards, is_first_wrong = step_kinds(found, scorer)
            low, high = np.quantile(rewards, [0.01, 1.0])
            edges = np.linspace(low, high if high > low else low + 1, 41)
            for mask, colour in ((~is_first_wrong, "C0"), (is_first_wrong, "C3")):
                if mask.any():
                    shown = np.clip(rewards[mask], edges[0], edges[-1])
                    axis.hist(shown, edges, weights=np.full(len(shown), 1 / len(shown)), color=colour, alpha=0.55)
            threshold = metrics[name].get(f"choice.threshold.{scorer}")
            if threshold is not None:
                axis.axvline(np.clip(threshold, edges[0], edges[-1]), color="black", ls="--", lw=1)
            sizes = f"{(~is_first_wrong).sum()} right, {is_first_wrong.sum()} first wrong"
            axis.set_title(f"{name}: {scorer_name(scorer)}\n{sizes}", fontsize=8.5)
            axis.set_xlabel("log-probability (nats)" if scorer == CONTROL else "reward (nats × beta)")
            axis.set_ylabel("share of the steps of the kind")
    looks = {"right step": "C0", "first wrong step": "C3"}
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour, alpha=0.55, label=kind) for kind, colour in looks.items()]
    handles.append(plt.Line2D([], [], color="black", ls="--", label="threshold chosen on validation"))
    fig.legend(handles=handles, loc="upper center", ncols=3, bbox_to_anchor=(0.5, 0.0), frameon=False)
    fig.suptitle("Rewards of the test steps, up to the first wrong one (lowest hundredth at the left end)")
    fig.tight_layout()
    save(fig, path)


def step_kinds(responses: Responses, scorer: str) -> tuple[np.ndarray, np.ndarray]:
    """(rewards, is it the first wrong step) of the judged responses' steps up to the first wrong one."""
    steps, rewards = responses.rewards(scorer)
    limit = responses.wrong_step(steps)[steps.response]
    shown = responses.judged[steps.response] & ((limit < 0) | (steps.index <= limit))
    return rewards[shown], (steps.index == limit)[shown]


def training(curves: dict[str, dict[str, pd.DataFrame]], path: Path) -> None:
    """Loss and mean rewards of right and wrong responses by step of training, a row per data set, a colour per loss.

    Args:
        curves: by data set and loss, rows as in CURVE.
    """
    plt = start()
    fig, axes = plt.subplots(len(curves), 2, figsize=(9.8, 3.0 * len(curves) + 0.7), squeeze=False)
    for row, (name, found) in zip(axes, curves.items(), strict=True):
        for loss, curve in found.items():
            curve = curve.sort_values("step")
            smooth = curve.rolling(max(1, len(curve) // 25), min_periods=1, center=True).mean()
            colour = f"C{list(LOSSES).index(loss)}"
            row[0].plot(curve["step"], smooth["loss"], color=colour, lw=1.2)
            for column, style in (("reward_correct", "-"), ("reward_wrong", "--")):
                row[1].plot(curve["step"], smooth[column], style, color=colour, lw=1.2)
        row[0].set_title(f"{name}: loss")
        row[0].set_ylabel("loss of the batch (each its own)")
        row[1].set_title(f"{name}: rewards of responses")
        row[1].set_ylabel("mean reward (nats × beta)")
        row[1].axhline(0, color="grey", lw=0.8)
        for axis in row:
            axis.set_xlabel("step of training (batches)")
    shown = [loss for loss in LOSSES if any(loss in found for found in curves.values())]
    handles = [plt.Line2D([], [], color=f"C{list(LOSSES).index(loss)}", label=LOSSES[loss]) for loss in shown]
    for style, label in (("-", "right answers"), ("--", "wrong answers")):
        handles.append(plt.Line2D([], [], color="grey", ls=style, label=label))
    fig.legend(handles=handles, loc="upper center", ncols=6, bbox_to_anchor=(0.5, 0.0), frameon=False)
    fig.suptitle("Training, running means over a 25th of the steps")
    fig.tight_layout()
    save(fig, path)


def _values(metrics: dict, keys: list[str]) -> np.ndarray:
    return np.array([np.nan if metrics.get(key) is None else metrics[key] for key in keys])


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"
