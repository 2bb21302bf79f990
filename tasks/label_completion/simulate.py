"""Stage: one of scikit-learn's tables, with answers of simulated workers."""

from pathlib import Path

from tasks import stage
from tasks.label_completion.params import TABLES, Simulate
from tasks.stage import UserError


@stage.command("label_completion.simulate", Simulate)
def simulate(parameters: Simulate, name: str, *, out: Path) -> None:
    """Draw the answers of simulated workers, several repeats, for the true classes of a scikit-learn data set."""
    if name not in TABLES:
        raise UserError(f"params.yaml: label_completion.simulated: {name!r} is not one of {', '.join(TABLES)}")
    import pandas as pd
    from sklearn import datasets

    from tasks.label_completion.dataset import Dataset, write_dataset
    from tasks.label_completion.simulation import simulate_answers

    table = getattr(datasets, f"load_{name}")(as_frame=True)
    width = len(str(len(table.target) - 1))
    tasks = [f"{i:0{width}d}" for i in range(len(table.target))]
    classes = [str(c) for c in table.target_names]
    repeats = []
    for repeat in stage.progress(range(parameters.repeats), f"simulate {name}"):
        drawn = simulate_answers(
            table.target.to_numpy(),
            len(classes),
            stage.random_generator(parameters.seed, name, repeat),
            n_workers=parameters.n_workers,
            labelling_probability=parameters.labelling_probability,
            accuracy=parameters.accuracy,
        )
        repeats.append(drawn.assign(repeat=repeat))
    answers = pd.concat(repeats, ignore_index=True)
    worker_names = [f"w{w:0{len(str(parameters.n_workers - 1))}d}" for w in range(parameters.n_workers)]
    answers = pd.DataFrame(
        {
            "repeat": answers["repeat"],
            "task": pd.Categorical.from_codes(answers["task"], tasks),
            "worker": pd.Categorical.from_codes(answers["worker"], worker_names),
            "label": pd.Categorical.from_codes(answers["label"], classes),
        }
    )
    features = table.data.astype("float64").set_axis(pd.Index(tasks, name="task"))
    truth = pd.Series([classes[c] for c in table.target], index=features.index, name="label")
    origin = f"scikit-learn's {name}, {parameters.n_workers} simulated workers, {parameters.repeats} draws"
    write_dataset(out, Dataset(answers, features, truth, classes, origin, simulated=True))


if __name__ == "__main__":
    simulate.run()
