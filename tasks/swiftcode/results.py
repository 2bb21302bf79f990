"""Answers to the test tasks beside what became of them: verdict, costs, and costs of the reference solution."""

import pandas as pd

from tasks.stage import UserError
from tasks.swiftcode.estimates import COSTS

UNIT = ["task", "language"]
KEYS = [*UNIT, "candidate"]
POOL = "pool"
NO_PROGRAM = "no_program"  # in place of a verdict, where no program was found in the response
TEXTS = ["task", "language", "generator", "candidate", "verdict"]


def asked_units(tasks: pd.DataFrame, answers: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The (task, language) that the generators were asked: the test tasks of every kind and in every language of an
    answer; sorted.

    Args:
        tasks: TASKS.
        answers: SAMPLES of test tasks, by the generator's name.

    Raises:
        UserError: a generator has no answer to one of them, or answers to others.
    """
    languages = sorted({str(language) for table in answers.values() for language in table["language"].unique()})
    answered = {str(task) for table in answers.values() for task in table["task"].unique()}
    kinds = tasks.loc[tasks["task"].isin(answered), "kind"].unique()
    test = tasks[(tasks["split"] == "test") & tasks["kind"].isin(kinds)]
    units = [
        (t, language)
        for t, of in zip(test["task"], test["languages"], strict=True)
        for language in languages
        if language in of
    ]
    for name, table in answers.items():
        found = set(table[UNIT].astype("str").itertuples(index=False, name=None))
        for word, some in (("no answer to", set(units) - found), ("answers to", found - set(units))):
            if some:
                task, language = min(some)
                raise UserError(
                    f"answers/{name}.parquet: {word} task {task} in {language}; "
                    "allowed: answers to all test tasks in the languages that are asked, and to no others; answer again"
                )
    return pd.DataFrame(sorted(units), columns=UNIT, dtype="str")


def gather(
    units: pd.DataFrame,
    pool: pd.DataFrame,
    answers: dict[str, pd.DataFrame],
    verdicts: pd.DataFrame,
    costs: pd.DataFrame,
) -> pd.DataFrame:
    """RESULTS of all answers and, as generator "pool", of the known solutions of the same units; rows sorted.

    Args:
        units: of `asked_units`.
        pool: SAMPLES; those of generator "pool" are looked at. Their `sample` is the solution's rank, 0 the reference's.
        answers: SAMPLES by the generator's name.
        verdicts: VERDICTS of all of them.
        costs: of `estimates.costs`. Answers without them, and units whose reference has none, keep missing costs.

    Raises:
        UserError: a candidate without a verdict.
    """
    known = pool[pool["generator"] == POOL]
    rows = pd.concat(
        [table[[*KEYS, "sample"]].assign(generator=name) for name, table in {**answers, POOL: known}.items()]
    )
    has_program = rows["candidate"].notna()
    rows = _texts(rows)
    rows = rows.assign(candidate=rows["candidate"].where(has_program)).merge(units, on=UNIT)
    rows = rows.merge(_texts(verdicts[[*KEYS, "verdict"]]), on=KEYS, how="left", validate="many_to_one")
    without = rows[rows["verdict"].isna() & rows["candidate"].notna()]
    if len(without):
        row = without.iloc[0]
        raise UserError(
            f"verdicts: task {row['task']}, language {row['language']}: none of candidate {row['candidate']} "
            f"of {row['generator']}; execute again"
        )
    rows["verdict"] = rows["verdict"].fillna(NO_PROGRAM)
    rows = rows.merge(costs.loc[costs["copy"] == 0, [*KEYS, *COSTS]], on=KEYS, how="left", validate="many_to_one")
    rows.loc[rows["verdict"] != "accepted", COSTS] = float("nan")
    reference = rows[(rows["generator"] == POOL) & (rows["sample"] == 0)]
    reference = reference[[*UNIT, *COSTS]].rename(columns={cost: f"reference_{cost}" for cost in COSTS})
    rows = rows.merge(reference, on=UNIT, how="left", validate="many_to_one")
    return rows.sort_values([*UNIT, "generator", "sample"], ignore_index=True)


def _texts(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype({column: "str" for column in TEXTS if column in table})
