"""The stage `evaluate`: a folder in, one flat file a data set out, the same bytes for the same tables."""

import json
from pathlib import Path

import pytest

from tasks.prm import evaluate
from tasks.prm.evaluation import evaluate_responses, flat
from tasks.prm.params import Evaluate
from tasks.prm.scored import gather
from tests.prm.results import BETAS, made_up, write_dataset

TRAIN = {"ce": {}, "dpo": {}}
PARAMETERS = {
    **{
        "datasets": ["sampled", "given"],
        "losses": ["ce", "dpo"],
        "problems": {"sampled": {}},
        "rollouts": {"sampled": {}},
    },
    **{"responses": {"given": {"path": "own.jsonl"}}, "train": {"sampled": TRAIN, "given": TRAIN}, "scoring": {}},
    "evaluate": {"n": [1, 2, 4], "choose_at": 4, "subsets": 20, "n_resamples": 50},
}


def tables():
    """Of `sampled` with four samples a problem, of `given` with two and unknown steps."""
    return {"sampled": made_up(), "given": made_up(samples=2, known=False, seed=5)}


@pytest.fixture
def filled(workspace):
    workspace.parameters(**PARAMETERS)
    for name, found in tables().items():
        write_dataset(Path("data") / name, found)
    return workspace


def run(workspace):
    code, said = workspace.run(evaluate, "data", "--out", "metrics")
    assert code == 0, said
    return {path.name: path.read_bytes() for path in sorted(Path("metrics").iterdir())}


def test_metrics_of_sampled_and_given_responses(filled):
    Path("metrics").mkdir()
    Path("metrics/old.json").write_text("{}")
    found = {name: json.loads(content) for name, content in run(filled).items()}
    assert sorted(found) == ["given.json", "sampled.json"]
    sampled, given = found["sampled.json"], found["given.json"]
    rows = tables()["sampled"]
    expected = evaluate_responses(
        "sampled",
        gather(rows["rollouts"], rows["steps"], BETAS),
        Evaluate(n=[1, 2, 4], choose_at=4, subsets=20, n_resamples=50),
    )
    for key, value in flat(expected).items():  # float32 on disk: the last of six digits may differ
        assert sampled[key] == (pytest.approx(value, rel=1e-5) if isinstance(value, float) else value), key
    assert (sampled["data.responses"], given["data.responses"]) == ("sampled", "given")
    assert sampled["data.grader"] == "number"
    assert sampled["data.test.problems"] == 30
    assert sampled["data.train.problems"] == 6
    assert (given["choice.n"], given["test.judged"], given["choice.localisation"]) == (2, 0, None)
    for values in found.values():
        assert all(isinstance(value, int | float | str | None) for value in values.values())


def test_losses_that_are_not_asked_for_are_not_read(filled):
    filled.parameters(**{**PARAMETERS, "losses": ["dpo"]})
    for name in ("sampled", "given"):
        Path(f"data/{name}/scores/ce.parquet").write_text("of an earlier run")
    found = json.loads(run(filled)["sampled.json"])
    assert "data.beta.ce" not in found
    assert found["choice.prm"].startswith("dpo.")


def test_same_bytes_again_and_from_shuffled_tables_with_other_hashes(filled):
    expected = run(filled)
    assert run(filled) == expected
    for name, found in tables().items():
        Path(f"data/{name}").rename(f"data/before_{name}")
        found["rollouts"] = found["rollouts"].sample(frac=1, random_state=1)
        found["steps"] = {loss: table.sample(frac=1, random_state=2) for loss, table in found["steps"].items()}
        write_dataset(Path("data") / name, found)
    done = filled.shell("tasks.prm.evaluate", "data", "--out", "metrics", PYTHONHASHSEED="77")
    assert done.returncode == 0, done.stderr
    assert {path.name: path.read_bytes() for path in sorted(Path("metrics").iterdir())} == expected


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("rollouts.parquet", "data/sampled/rollouts.parquet: not a readable parquet table"),
        ("problems.parquet", "data/sampled/problems.parquet: not a readable parquet table"),
        ("scores/dpo.parquet", "data/sampled/scores/dpo.parquet: not a readable parquet table"),
        ("models/ce/prm.json", "data/sampled/models/ce/prm.json: not valid JSON"),
    ],
)
def test_a_damaged_file_leaves_nothing_behind(part, message, filled):
    path = Path("data/sampled") / part
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    before = filled.files()
    code, said = filled.run(evaluate, "data", "--out", "metrics")
    assert (code, said.count("\n")) == (1, 1)
    assert message in said
    assert filled.files() == before


@pytest.mark.parametrize("part", ["rollouts.parquet", "scores/ce.parquet", "models/ce/prm.json"])
def test_a_missing_file_is_named(part, filled):
    Path(f"data/sampled/{part}").unlink()
    code, said = filled.run(evaluate, "data", "--out", "metrics")
    assert (code, said.count("\n")) == (1, 1)
    assert f"data/sampled/{part}" in said


@pytest.mark.parametrize(
    "content", ['{"beta": 0}', '{"beta": "auto"}', '{"beta": true}', "{}", "[1]", '{"beta": Infinity}']
)
def test_a_model_without_beta_is_refused(content, filled):
    Path("data/given/models/dpo/prm.json").write_text(content)
    code, said = filled.run(evaluate, "data", "--out", "metrics")
    assert (code, said.count("\n")) == (1, 1)
    assert "data/given/models/dpo/prm.json: beta is " in said
    assert "a number above 0 is allowed" in said
    assert not Path("metrics").exists()


def test_scores_of_other_responses_are_refused(filled):
    found = made_up(seed=3)
    found["rollouts"] = found["rollouts"][found["rollouts"]["sample"] < 3]
    Path("data/sampled").rename("data/before")
    write_dataset(Path("data/sampled"), found)
    code, said = filled.run(evaluate, "data", "--out", "metrics")
    assert (code, said.count("\n")) == (1, 1)
    assert (
        "data/sampled/scores/ce.parquet: not of the validation and test responses of rollouts.parquet; score again"
        in said
    )


@pytest.mark.parametrize("change", [{"choose_at": 1}, {"n_resamples": 9}, {"confidence": 1.0}, {"n": []}, {"years": 3}])
def test_parameters_are_refused(change, filled):
    filled.parameters(**{**PARAMETERS, "evaluate": change})
    code, said = filled.run(evaluate, "data", "--out", "metrics")
    assert (code, said.count("\n")) == (1, 1)
    assert f"params.yaml: prm.evaluate.{next(iter(change))}" in said
