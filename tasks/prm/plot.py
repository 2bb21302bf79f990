"""Stage: pictures and the text of the report, over all data sets."""

from pathlib import Path

from tasks import stage
from tasks.prm.params import Parameters


@stage.command("prm", Parameters)
def plot(parameters: Parameters, data: Path, metrics: Path, study: Path, *, figures: Path, summary: Path) -> None:
    """Draw accuracies, examples with their rewards, rewards by kind and training; say what they show and what not."""
    from tasks.pictures import take_study
    from tasks.prm import figures as draw
    from tasks.prm.evaluate import read_responses
    from tasks.prm.summary import summarise
    from tasks.tables import read_json, write_json

    confidence = parameters.evaluate.confidence
    found = {name: read_json(metrics / f"{name}.json") for name in parameters.datasets}
    responses = {name: read_responses(data / name, parameters.losses)[1]["test"] for name in parameters.datasets}
    figures.mkdir()
    draw.accuracy(found, figures / "accuracy.png", confidence)
    captions = {
        "accuracy.png": {
            "title": "Accuracy against the number of responses",
            "caption": "Share of the test problems that are answered right when one of n responses is chosen: by the "
            "implicit PRM, by the untrained reference (control), by votes, or by an oracle (pass@n). Loss and aggregation "
            "were chosen on validation problems. Means over all subsets of n responses, votes over random ones; "
            "intervals over problems.",
        }
    }
    captions |= _examples(responses, data, found, figures)
    captions |= _kinds(responses, found, figures)
    captions |= _training(parameters, data, figures)
    study_text = take_study(
        study,
        figures,
        captions,
        title="Study: losses, seeds, beta and adapters",
        caption="Accuracy of the best of 8 on the test problems, a point per training: by loss and seed, by beta, and by "
        "whether the whole model or adapters were trained. Lines: majority and untrained control of the same responses.",
    )
    write_json(figures / "captions.json", captions)
    summary.write_text(summarise(found, study_text, confidence), encoding="utf-8")


def _examples(responses: dict, data: Path, found: dict, figures: Path) -> dict:
    from tasks.prm import figures as draw
    from tasks.prm.schemas import PROBLEMS
    from tasks.tables import read_table

    captions = {}
    for name, part in responses.items():
        problems = read_table(data / name / "problems.parquet", PROBLEMS)
        prompts = dict(zip(problems["problem"], problems["prompt"], strict=True))
        scorer = _scorer(found[name], part)
        threshold = found[name].get(f"choice.threshold.{scorer}")
        draw.strips(name, part, scorer, threshold, prompts, figures / f"steps-{name}.png")
        captions[f"steps-{name}.png"] = {
            "title": f"Rewards of steps: {name}",
            "caption": "The first test responses of each kind, in the order of problems and samples: none was picked. A "
            "cell is a step, its colour and the number its reward, red below the threshold that was chosen on validation "
            "(the line in the scale). The frame marks the step that is really the first wrong one, where it is known.",
        }
    return captions


def _kinds(responses: dict, found: dict, figures: Path) -> dict:
    from tasks.prm import figures as draw
    from tasks.prm.scored import CONTROL, KINDS

    judged = {name: part for name, part in responses.items() if part.judged.any()}
    if not judged:
        return {}
    scorers = {}
    for name, part in judged.items():
        loss = _scorer(found[name], part).partition(".")[0]
        scorers[name] = [*(f"{loss}.{kind}" for kind in KINDS), CONTROL]
    draw.kinds(judged, scorers, found, figures / "kinds.png")
    return {
        "kinds.png": {
            "title": "Rewards of right and of wrong steps",
            "caption": "Where the two heaps lie apart, the reward finds the first wrong step. The threshold was chosen on "
            "validation responses. Steps after the first wrong one are left out.",
        }
    }


def _training(parameters: Parameters, data: Path, figures: Path) -> dict:
    from tasks.prm import figures as draw
    from tasks.prm.schemas import CURVE
    from tasks.tables import read_table

    curves = {
        name: {loss: read_table(data / name / f"models/{loss}/curve.parquet", CURVE) for loss in parameters.losses}
        for name in parameters.datasets
    }
    draw.training(curves, figures / "training.png")
    return {
        "training.png": {
            "title": "Training",
            "caption": "Left: each loss on its own scale. Right: rewards of right and wrong answers, of which the losses "
            "see only the difference (DPO) or also the sign (CE, NCA, KTO). Where the solid line falls too, the "
            "policy makes right answers unlikely as well.",
        }
    }


def _scorer(metrics: dict, responses) -> str:
    """Whose rewards are shown: the best at localisation on validation, else the best at selection, else the first."""
    chosen = metrics["choice.localisation"] or (metrics.get("choice.prm") or "").rpartition(".")[0]
    return chosen or responses.scorers()[0]


if __name__ == "__main__":
    plot.run()
