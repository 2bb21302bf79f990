"""CHAMP: solutions by models of competition problems, in which people marked the first wrong step (Mao et al. 2024)."""

from typing import Any


def solutions(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The annotated solutions in `data` (the package's v0.json), one row each, by problem, model and request.

    The package marks a span of characters, not a step; both its ends are missing where no step is wrong.
    """
    rows = []
    for name, problem in sorted(data["problems"].items()):
        for key, marked in sorted(problem["fws_annotations"].items()):
            model, request = key.split("|")
            right = marked["start_idx"] is None
            rows.append(
                {
                    "problem": name,
                    "prompt": problem["_text"],
                    "response": marked["text"],
                    "correct": right,
                    "first_wrong": -1 if right else marked["start_idx"],
                    "last_wrong": -1 if right else marked["end_idx"],
                    "category": problem["category"],
                    "reference_answer": problem["_answer"],
                    "model": model,
                    "request": request,
                }
            )
    return rows
