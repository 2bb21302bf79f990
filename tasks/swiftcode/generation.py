"""Rows of SAMPLES: known solutions, and the answers of models to tasks, with the programs in them."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from tasks.lm.chat import Chat
from tasks.lm.loading import LanguageModel
from tasks.lm.sampling import sample
from tasks.lm.tokens import encode_prompt, encode_response, end_tokens
from tasks.swiftcode.extraction import extract, identity
from tasks.swiftcode.params import Sampling
from tasks.swiftcode.prompts import FENCE, messages, prefill
from tasks.swiftcode.schemas import SAMPLES

POOL = "pool"
ORDER = ["task", "language", "generator", "sample"]


@dataclass(frozen=True)
class Question:
    """A task in one of its languages."""

    task: dict
    language: str

    @property
    def key(self) -> str:
        return f"{self.task['task']}\n{self.language}"


@dataclass(frozen=True)
class Response:
    """What a model has answered; `given` is the beginning that it did not write itself."""

    text: str
    tokens: int
    finished: bool
    given: str = ""


def questions(tasks: pd.DataFrame, languages: Sequence[str]) -> list[Question]:
    """Every task in those of the languages that it can be answered in, by task and language."""
    rows = tasks.astype({"task": "str", "kind": "str"}).sort_values("task").to_dict("records")
    return [Question(row, language) for row in rows for language in sorted(set(languages) & set(row["languages"]))]


def known(solutions: pd.DataFrame) -> pd.DataFrame:
    """The rows of the tasks' own solutions: generator "pool", their rank as the sample's number."""
    rows = [
        {
            "task": str(row.task),
            "language": str(row.language),
            "generator": POOL,
            "sample": row.rank,
            "hint": False,
            "response": row.source,
            "tokens": 0,
            "finished": True,
            "source": row.source,
            "candidate": identity(row.source, str(row.language)),
        }
        for row in solutions.itertuples()
    ]
    return _table(rows)


def answers(
    model: LanguageModel | Chat, generator: str, asked: Sequence[Question], parameters: Sampling
) -> pd.DataFrame:
    """The rows of a model's answers: ``samples`` to each question, and one greedy more where that is wanted.

    With ``hint`` the odd samples are asked for speed. The random numbers of a sample come from (seed, task, language, hint,
    number), the same for all models, so that the comparison of two models on a task has less noise. A model in a folder
    continues the given code with ``prefill``, and its answer ends with the block of code. Servers begin answers of their
    own, because their protocol has no such beginning, and know no ``top_k``.

    Raises:
        ValueError: more tokens than the model has positions for.
        UserError: of the server, see `Chat.sample`.
    """
    rows = []
    n = parameters.samples
    draws = (
        [(False, range(0, n, 2), False), (True, range(1, n, 2), False)]
        if parameters.hint
        else [(False, range(n), False)]
    )
    draws += [(False, [n], True)] if parameters.greedy else []
    draw = _from_server if isinstance(model, Chat) else _from_folder
    for hint, numbers, greedy in draws:
        found = draw(model, asked, hint, len(numbers), 0.0 if greedy else parameters.temperature, parameters)
        for question, responses in zip(asked, found, strict=True):
            rows += [
                _row(question, generator, number, hint, response)
                for number, response in zip(numbers, responses, strict=True)
            ]
    return _table(rows)


def _from_folder(
    model: LanguageModel, asked: Sequence[Question], hint: bool, n: int, temperature: float, parameters: Sampling
) -> list[list[Response]]:
    given = [prefill(q.task, q.language) if parameters.prefill else "" for q in asked]
    prompts = [
        encode_prompt(model.tokenizer, messages(q.task, q.language, hint=hint))
        + encode_response(model.tokenizer, begun, finished=False)
        for q, begun in zip(asked, given, strict=True)
    ]
    ends = end_tokens(model.model, model.tokenizer)
    drawn = sample(
        model.model,
        prompts,
        _keys(asked, hint),
        n,
        end=[*ends, *fences(model.tokenizer)] if parameters.prefill else ends,
        max_new_tokens=parameters.max_new_tokens,
        seed=parameters.seed,
        temperature=temperature,
        top_p=parameters.top_p,
        top_k=parameters.top_k,
        batch=parameters.batch,
        description=f"answers{' with hint' if hint else ''}",
    )
    responses = []
    for samples, begun in zip(drawn, given, strict=True):
        texts = [
            model.tokenizer.decode([t for t in one.tokens if t not in ends], clean_up_tokenization_spaces=False)
            for one in samples
        ]
        responses.append(
            [Response(text, len(one.tokens), one.finished, begun) for text, one in zip(texts, samples, strict=True)]
        )
    return responses


def _from_server(
    model: Chat, asked: Sequence[Question], hint: bool, n: int, temperature: float, parameters: Sampling
) -> list[list[Response]]:
    drawn = model.sample(
        [messages(q.task, q.language, hint=hint) for q in asked],
        _keys(asked, hint),
        n,
        max_new_tokens=parameters.max_new_tokens,
        seed=parameters.seed,
        temperature=temperature,
        top_p=parameters.top_p,
    )
    return [[Response(one.text, one.tokens, one.finished) for one in answers] for answers in drawn]


def _keys(asked: Sequence[Question], hint: bool) -> list[str]:
    return [f"{q.key}\n{'hint' if hint else ''}" for q in asked]


def fences(tokenizer) -> list[int]:
    """Tokens that begin with a fence, with or without a blank before it: the end of a block that is open."""
    numbers = sorted(tokenizer.get_vocab().values())
    return [number for number in numbers if tokenizer.decode([number]).strip().startswith(FENCE)]


def _row(question: Question, generator: str, number: int, hint: bool, response: Response) -> dict:
    task, language = question.task, question.language
    entry_point = task["entry_point"] if task["kind"] == "function" else None
    source = extract(response.text, language, entry_point=entry_point, given=response.given)
    return {
        "task": task["task"],
        "language": language,
        "generator": generator,
        "sample": number,
        "hint": hint,
        "response": response.text,
        "tokens": response.tokens,
        "finished": response.finished,
        "source": source,
        "candidate": None if source is None else identity(source, language),
    }


def _table(rows: list[dict]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=SAMPLES.names).sort_values(ORDER, ignore_index=True)
