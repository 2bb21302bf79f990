"""Log-probabilities over HTTP: a server on the loopback answers as vLLM does, from the tiny model, or with a fault."""

import json
import math
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import torch

from tasks.lm.endpoint import Endpoint
from tasks.lm.logprobs import token_log_probs
from tasks.lm.tiny import build_tokenizer
from tasks.stage import UserError

PROMPTS = [[1, 8, 18, 9], [1, 10], [1, 8, 18, 9], [1, 12, 19, 9, 7], [1, 8]]
RESPONSES = [[6, 8, 18, 9, 20, 10, 4, 2], [2], [], [7, 9, 20, 11, 2], [4, 4, 4]]


class Server:
    """What a test sets: the fields known, faults before an answer, a change of every answer. What it saw: requests."""

    def __init__(self, language_model) -> None:
        self.model, self.tokenizer = language_model.model, language_model.tokenizer
        self.fields = {"prompt_logprobs", "echo", "logprobs"}
        self.strict = False  # unknown fields are refused, not ignored
        self.faults: list = []
        self.change = lambda answer: answer
        self.requests: list[dict] = []
        self.headers: list[dict] = []
        self.delay_s = lambda body: 0.0
        self.lock = threading.Lock()

    def answer(self, body: dict) -> tuple[int, dict]:
        known = {"model", "prompt", "max_tokens", "temperature", *self.fields}
        if self.strict and set(body) - known:
            unknown = min(set(body) - known)
            return 400, {"error": {"message": f"Unrecognized request argument supplied: {unknown}"}}
        if body["model"] != "tiny":
            return 404, {"error": {"message": f"The model `{body['model']}` does not exist.", "type": "NotFoundError"}}
        if body["max_tokens"] < 1:
            return 400, {"error": {"message": "max_tokens must be at least 1"}}
        ids = body["prompt"]
        with torch.inference_mode():
            logits = self.model(torch.tensor([ids])).logits[0].double()
        values = torch.log_softmax(logits, dim=-1)
        sampled = int(values[-1].argmax())
        choice = {"index": 0, "text": self.tokenizer.decode([sampled]), "finish_reason": "length", "logprobs": None}
        if "prompt_logprobs" in body and "prompt_logprobs" in self.fields:
            entries = [self.entry(values[i], token, body["prompt_logprobs"]) for i, token in enumerate(ids[1:])]
            choice["prompt_logprobs"] = [None, *entries]
        elif body.get("logprobs") and "logprobs" in self.fields:
            echoed = [*ids, sampled] if body.get("echo") and "echo" in self.fields else [sampled]
            own = [float(values[i, token]) for i, token in enumerate([*ids[1:], sampled])]
            choice["logprobs"] = {
                "tokens": [self.tokenizer.decode([t]) for t in echoed],
                "token_logprobs": [None, *own] if len(echoed) > 1 else own[-1:],
            }
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1, "total_tokens": len(ids) + 1}
        return 200, self.change({"object": "text_completion", "model": "tiny", "choices": [choice], "usage": usage})

    def entry(self, values: torch.Tensor, token: int, n_top: int) -> dict:
        ranks = values.argsort(descending=True).tolist()
        shown = dict.fromkeys([token, *ranks[:n_top]])
        return {
            str(t): {
                "logprob": float(values[t]),
                "rank": ranks.index(t) + 1,
                "decoded_token": self.tokenizer.decode([t]),
            }
            for t in shown
        }


@pytest.fixture
def served(tiny, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server(tiny)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(200 if self.path == "/v1/models" else 404, {"data": [{"id": "tiny"}, {"id": "tiny-lora"}]})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with server.lock:
                server.requests.append(body)
                server.headers.append(dict(self.headers))
                fault = server.faults.pop(0) if server.faults else None
            if self.path != "/v1/completions":
                self.reply(404, {"detail": "Not Found"})
            elif fault == "hang up":
                self.connection.close()
            elif fault == "break off":
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b'{"choices": [')
            elif isinstance(fault, bytes):
                self.reply(200, fault)
            elif fault is not None:
                self.reply(fault[0], {"error": {"message": "try\n later"}}, fault[1])
            else:
                time.sleep(server.delay_s(body))
                self.reply(*server.answer(body))

        def reply(self, status, content, headers=None):
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
    server.url = f"http://127.0.0.1:{httpd.server_port}/v1"
    yield server
    httpd.shutdown()
    httpd.server_close()


def endpoint(server, **options) -> Endpoint:
    return Endpoint(server.url, **{"model": "tiny", "tokenizer": server.tokenizer, "pause_s": 0.0, **options})


def ask(server, **options) -> list[np.ndarray]:
    return endpoint(server, **options).token_log_probs(PROMPTS, RESPONSES)


def refused(server, message: str, **options) -> None:
    with pytest.raises(UserError, match=message) as error:
        ask(server, **options)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(server.url)


def check(server, found: list[np.ndarray]) -> None:
    wanted = token_log_probs(server.model, PROMPTS, RESPONSES)
    assert [len(values) for values in found] == [8, 1, 0, 5, 3]
    for values, right in zip(found, wanted, strict=True):
        assert values.dtype == np.float32
        np.testing.assert_allclose(values, right, atol=1e-4)


@pytest.mark.parametrize("tokenizer", [True, False])
@pytest.mark.parametrize("parallel", [1, 4])
def test_as_computed_here_with_prompt_logprobs(served, parallel, tokenizer):
    check(served, ask(served, parallel=parallel, **({} if tokenizer else {"tokenizer": None})))
    assert len(served.requests) == 4, "an empty response needs no request"
    assert all(body["prompt_logprobs"] == 0 and "echo" not in body for body in served.requests)
    sent = sorted(body["prompt"] for body in served.requests)
    assert sent == sorted(p + r for p, r in zip(PROMPTS, RESPONSES, strict=True) if r)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("end", [0, 1])
def test_as_computed_here_with_echo_where_prompt_logprobs_are_refused_or_ignored(served, strict, end):
    served.fields, served.strict = {"echo", "logprobs"}, strict

    def without_sampled_token(answer):
        logprobs = answer["choices"][0]["logprobs"]
        for key in list(logprobs or {}):
            logprobs[key] = logprobs[key][: len(logprobs[key]) - end]
        return answer

    served.change = without_sampled_token
    check(served, ask(served))
    assert [body.get("echo", False) for body in served.requests[:2]] == [False, True], "asked once, then settled"
    assert sum("prompt_logprobs" in body for body in served.requests) == 1


def test_answers_keep_their_places_whichever_comes_first(served):
    served.delay_s = lambda body: 0.2 / len(body["prompt"])
    prompts, responses = [[1, 8]] * 12, [[4 + i] * (i + 1) for i in range(12)]
    found = endpoint(served, parallel=12, tokenizer=None).token_log_probs(prompts, responses)
    for values, right in zip(found, token_log_probs(served.model, prompts, responses), strict=True):
        np.testing.assert_allclose(values, right, atol=1e-4)
    order = [len(body["prompt"]) - 2 for body in served.requests]
    assert sorted(order) == list(range(1, 13))


def test_requests_run_at_the_same_time_but_not_more_than_asked_for(served):
    running, most = 0, 0

    def slow(body):
        nonlocal running, most
        with served.lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        with served.lock:
            running -= 1
        return 0.0

    served.delay_s = slow
    endpoint(served, parallel=3).token_log_probs([[1, 8]] * 10, [[4]] * 10)
    assert most == 3


@pytest.mark.parametrize(
    "fault", [(429, {}), (429, {"Retry-After": "0"}), (500, {}), (503, {}), "hang up", "break off"]
)
def test_passing_faults_are_tried_again(served, fault):
    served.faults = [fault, fault]
    check(served, ask(served))
    assert len(served.requests) == 6


def test_lasting_faults_are_told(served):
    served.faults = [(503, {})] * 99
    refused(served, r"/completions: no answer after 3 attempts: HTTP 503: try later$", attempts=3)
    assert len(served.requests) == 3
    served.faults = ["hang up"] * 99
    refused(served, r"/completions: no answer after 2 attempts: \S", attempts=2)
    served.faults = []
    served.delay_s = lambda body: 0.5
    refused(served, r"/completions: no answer after 1 attempts: .*timed out", attempts=1, timeout=0.05)


def test_pauses_double_and_the_server_may_ask_for_longer_ones(served, monkeypatch):
    pauses = []
    monkeypatch.setattr("tasks.lm.server.time.sleep", pauses.append)
    served.delay_s = lambda body: None
    served.faults = [
        (429, {}),
        (429, {"Retry-After": "7"}),
        (429, {"Retry-After": "soon"}),
        (429, {"Retry-After": "999"}),
    ]
    found = endpoint(served, pause_s=0.5).token_log_probs([[1]], [[4]])
    assert len(found[0]) == 1
    assert [pause for pause in pauses if pause is not None] == [0.5, 7.0, 2.0, 60.0]


def test_an_address_where_nobody_listens_is_told(served):
    url = "http://127.0.0.1:9"
    with pytest.raises(UserError, match=rf"^{url}/completions: no answer after 2 attempts: [^\n]*refused"):
        Endpoint(url, "tiny", attempts=2, pause_s=0.0).token_log_probs(PROMPTS, RESPONSES)
    for wrong in ("file:///etc/passwd", "127.0.0.1:8000/v1"):
        with pytest.raises(UserError, match=rf"^{wrong}: not the address of a server"):
            Endpoint(wrong, "tiny")


def test_a_model_that_is_not_served_is_told_with_those_that_are(served):
    refused(
        served,
        r"/completions: other: HTTP 404: The model `other` does not exist.; the server offers tiny, tiny-lora$",
        model="other",
    )
    assert len(served.requests) == 1, "not tried again"
    served.url = served.url.removesuffix("/v1")
    refused(served, r"/completions: tiny: HTTP 404: Not Found$")


def test_a_refusal_is_told_at_once(served):
    served.faults = [(401, {})]
    refused(served, r"/completions: HTTP 401: try later$")
    served.faults = [(400, {})]
    refused(served, r"/completions: HTTP 400: try later$")
    assert len(served.requests) == 2


def test_the_key_is_sent_never_shown_and_not_taken_elsewhere(served):
    asked = endpoint(served, key="secret-word")
    asked.token_log_probs([[1]], [[4]])
    assert served.headers[0]["Authorization"] == "Bearer secret-word"
    assert "secret-word" not in repr(asked)
    ask(served)
    assert "Authorization" not in served.headers[-1]
    served.faults = [(302, {"Location": f"{served.url}/completions"})]
    before = len(served.requests)
    refused(served, r"/completions: HTTP 302: try later$", key="secret-word")
    assert len(served.requests) == before + 1


@pytest.mark.parametrize("fields", [set(), {"logprobs"}])
@pytest.mark.parametrize("strict", [True, False])
def test_a_server_without_log_probabilities_of_the_prompt_is_told(served, fields, strict):
    served.fields, served.strict = fields, strict
    refused(served, "offers no log-probabilities of the prompt for tiny: neither prompt_logprobs")


def test_a_fault_in_one_of_many_answers_is_told_and_ends_the_run(served):
    served.change = lambda answer: answer if answer["usage"]["prompt_tokens"] != 7 else {"choices": [{}]}
    with pytest.raises(UserError, match=r"an answer without prompt_logprobs$"):
        endpoint(served, parallel=2).token_log_probs([[1, 8]] * 60, [[4] * (1 + (i == 5) * 4) for i in range(60)])
    assert len(served.requests) < 60


def of_choice(change):
    def changed(answer):
        choice = answer["choices"][0]
        choice["prompt_logprobs"] = change(choice["prompt_logprobs"])
        return answer

    return changed


def replaced(value):
    """The log-probability of the last token is another one."""

    def change(entries):
        entries[-1] = {token: {**entry, "logprob": value} for token, entry in entries[-1].items()}
        return entries

    return of_choice(change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            of_choice(lambda entries: entries[:-1]),
            "log-probabilities of 11 tokens for a prompt and response of 12 tokens$",
        ),
        (of_choice(lambda entries: [*entries, None]), "log-probabilities of 13 tokens for a prompt and response of 12"),
        (of_choice(lambda entries: [None]), "log-probabilities of 1 tokens for a prompt and response of 12 tokens$"),
        (of_choice(lambda entries: [*entries[:-1], {"5": {"logprob": -1.0}}]), "of token 2; there are those of 5$"),
        (of_choice(lambda entries: [*entries[:-1], None]), "no log-probability of token 2; there are those of $"),
        (of_choice(lambda entries: 7), "the answer has another form than that of prompt_logprobs$"),
        (replaced(math.nan), "nan for token 2 of a response; a log-probability is needed$"),
        (replaced(-math.inf), "-inf for token 2"),
        (replaced(-9999.0), "-9999.0 for token 2"),
        (replaced(None), "None for token 2"),
        (replaced(0.4), "0.4 for token 2"),
        (replaced("-1"), "-1 for token 2"),
        (lambda answer: {"choices": []}, "the answer has no choices; is this the server's address"),
        (lambda answer: [1], "the answer has no choices; is this the server's address"),
    ],
)
def test_answers_that_are_none_are_told(served, change, message):
    served.change = change
    refused(served, message)


def test_an_answer_that_is_no_json_is_told(served):
    served.faults = [b"<html>hello</html>"]
    refused(served, "/completions: the answer is not JSON; is this the server's address")


@pytest.mark.parametrize("n_more", [-1, 2])
def test_another_number_of_echoed_tokens_is_told(served, n_more):
    """A server that puts a begin token before the prompt, or cuts it, would shift every number by one."""
    served.fields = {"echo", "logprobs"}

    def changed(answer):
        logprobs = answer["choices"][0]["logprobs"]
        if logprobs:
            logprobs["token_logprobs"] = ([*logprobs["token_logprobs"], -1.0, -1.0])[: 12 + n_more]
        return answer

    served.change = changed
    refused(served, f"log-probabilities of {12 + n_more} tokens for a prompt and response of 12 tokens$")


def test_a_begin_token_that_the_server_adds_is_told(served):
    served.fields = {"echo", "logprobs"}
    served.change = lambda answer: {**answer, "usage": {"prompt_tokens": 13}}
    refused(served, "log-probabilities of 13 tokens for a prompt and response of 12 tokens$")


@pytest.mark.parametrize("fields", [{"prompt_logprobs"}, {"echo", "logprobs"}])
def test_a_server_of_another_vocabulary_is_told(served, fields):
    served.fields = fields
    other = build_tokenizer(["\n", "\n\n", "Step 1:", "Step 2:", *"1023456789", "+", "-", "=", "Answer:", " "])
    refused(
        served, "token 8 is '0' for tiny and '1' for the tokenizer given: they do not belong together", tokenizer=other
    )


def test_what_cannot_be_asked_is_an_error_of_the_caller(served):
    with pytest.raises(ValueError, match="prompt 1 has no token"):
        endpoint(served).token_log_probs([[1], []], [[2], [2]])
    with pytest.raises(ValueError, match="2 prompts and 1 responses"):
        endpoint(served).token_log_probs([[1], [1]], [[2]])
    assert endpoint(served).token_log_probs([], []) == []
    assert [len(values) for values in endpoint(served).token_log_probs([[1]], [[]])] == [0]
    assert served.requests == []
