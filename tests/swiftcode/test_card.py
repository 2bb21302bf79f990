"""The model card: how it says that the folder is loaded, and of what it speaks."""

import re

import pytest
import yaml

from tasks.swiftcode.card import about, card
from tasks.swiftcode.examples import Example, Examples
from tasks.swiftcode.params import ARMS, Finetune

COUNTS = {"used": 2, "without_every_arm": 3, "too_long": 0, "not_continued": 0, "same_program": 1}


def described(arm: str = "fastest", **parameters) -> dict:
    sizes = dict(zip(ARMS, (4, 3, 6), strict=True))
    arms = {a: [Example(t, "python", [1] * 5, [2] * (n + i)) for i, t in enumerate("ab")] for a, n in sizes.items()}
    return about(arm, Examples(arms, COUNTS), 7, Finetune(**parameters), base="data/swiftcode/d/base", weights="ff")


def test_counts_and_tokens_of_an_arm_beside_those_of_the_others():
    found = described()
    assert found["counts"] == COUNTS | {"steps": 7}
    assert found["tokens"] == {"prompt": 10, "response": 7, "longest": 9}
    assert found["response_tokens"] == {"random-correct": 9, "fastest": 7, "slowest": 13}
    assert found["tasks"] == [
        {"task": "a", "language": "python", "tokens": 3},
        {"task": "b", "language": "python", "tokens": 4},
    ]
    assert found["parameters"] == Finetune().model_dump(mode="json")


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize(
    ("parameters", "library", "loader", "tokenizer"),
    [
        ({}, "peft", "AutoPeftModelForCausalLM", "data/swiftcode/d/base"),
        ({"lora": None}, "transformers", "AutoModelForCausalLM", "data/swiftcode/d/models/{arm}"),
    ],
)
def test_a_card_says_how_to_load_what_it_describes(arm, parameters, library, loader, tokenizer):
    text = card("d", described(arm, **parameters))
    front = yaml.safe_load(text.split("---")[1])
    assert front["library_name"] == library
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
    compile(code, "card", "exec")
    assert f"from {library} import {loader}\n" in code
    assert f'{loader}.from_pretrained("data/swiftcode/d/models/{arm}")' in code
    assert f'AutoTokenizer.from_pretrained("{tokenizer.format(arm=arm)}")' in code
    assert f"# SwiftCode: d, arm {arm}\n" in text
    assert "\n\n\n" not in text
    assert "| learning_rate | 0.001 |" in text


def test_a_card_says_what_was_trained_on_and_what_not():
    text = " ".join(card("d", described("slowest")).split())
    assert "Trained from `data/swiftcode/d/base` on 2 examples (13 response tokens) in 7 steps." in text
    assert "random-correct 9, fastest 7, slowest 13" in text
    assert "In 1 of the examples all arms have the same program" in text
    assert "the least efficient correct program" in text
    assert "the least efficient" not in card("d", described("fastest"))
    assert "run them in a sandbox" in text
