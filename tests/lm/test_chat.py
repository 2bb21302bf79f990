"""Responses over HTTP: a server on the loopback answers as OpenAI-compatible chat servers do, or with a fault."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tasks.lm.chat import Answer, Chat
from tasks.stage import UserError

PROMPTS = [[{"role": "user", "content": text}] for text in ("a", "b", "c")]
KEYS = ["1", "2", "3"]
OPTIONS = {"max_new_tokens": 20, "seed": 3}


class Server:
    """What a test sets: `answer` of a request's body; faults that come first. What it saw: requests and headers."""

    def __init__(self) -> None:
        self.requests: list[dict] = []
        self.headers: list[dict] = []
        self.faults: list[tuple[int, dict]] = []
        self.lock = threading.Lock()
        self.running = self.most = 0
        self.answer = self.as_the_protocol_says

    def as_the_protocol_says(self, body: dict) -> dict:
        asked = body["messages"][0]["content"]
        time.sleep({"a": 0.02, "b": 0.01}.get(asked, 0.0))  # the first answers come last
        return completion(f"{asked} {body['seed']}")


def completion(text: str | None, reason: str = "stop", **more) -> dict:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
    return {"object": "chat.completion", "choices": [choice], "usage": {"completion_tokens": 7}, **more}


@pytest.fixture
def served(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with server.lock:
                server.requests.append(body)
                server.headers.append(dict(self.headers))
                server.running += 1
                server.most = max(server.most, server.running)
                fault = server.faults.pop(0) if server.faults else None
            status, content = fault or (200, server.answer(body))
            if self.path != "/v1/chat/completions":
                status, content = 404, {"detail": "Not Found"}
            with server.lock:
                server.running -= 1
            content = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
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


def chat(server, **options) -> Chat:
    return Chat(server.url, "small", **{"pause_s": 0.0, **options})


def ask(server, n: int = 4, **options) -> list[list[Answer]]:
    return chat(server).sample(PROMPTS, KEYS, n, **{**OPTIONS, **options})


@pytest.mark.parametrize("parallel", [1, 8])
def test_every_sample_is_a_request_with_a_seed_of_its_own_and_keeps_its_place(served, parallel):
    found = chat(served, parallel=parallel).sample(PROMPTS, KEYS, 4, temperature=0.7, top_p=0.9, **OPTIONS)
    assert [len(one) for one in found] == [4, 4, 4]
    assert {one.text.split()[0] for one in found[1]} == {"b"}
    assert len({one.text for answers in found for one in answers}) == 12
    assert found[0][0].tokens == 7
    assert found[0][0].finished
    assert len({body["seed"] for body in served.requests}) == 12
    for body in served.requests:
        assert set(body) == {"model", "messages", "max_tokens", "temperature", "top_p", "seed"}
        assert (body["model"], body["max_tokens"], body["temperature"], body["top_p"]) == ("small", 20, 0.7, 0.9)
    assert served.most <= parallel
    assert (served.most > 1) == (parallel > 1)


def test_what_is_asked_depends_on_the_prompt_alone(served):
    whole = ask(served)
    order = [2, 0, 1]
    other = chat(served).sample([PROMPTS[i] for i in order], [KEYS[i] for i in order], 4, **OPTIONS)
    assert [other[order.index(i)] for i in range(3)] == whole
    assert [answers[:2] for answers in whole] == ask(served, 2)
    assert ask(served, seed=4) != whole


def test_what_ended_early_or_says_nothing_is_an_answer_too(served):
    served.answer = lambda body: completion("a\ud800b", "length", usage=None)
    assert ask(served, 1)[0] == [Answer("a?b", 0, False)]
    served.answer = lambda body: completion(None)
    assert ask(served, 1)[2] == [Answer("", 7, True)]
    assert ask(served, 0) == [[], [], []]


def test_a_server_that_does_not_sample_is_told(served):
    served.answer = lambda body: completion(body["messages"][0]["content"])
    with pytest.raises(
        UserError, match=r"answers each prompt 4 times the same at temperature 0\.8: .*do_sample"
    ) as error:
        ask(served, temperature=0.8)
    assert str(error.value).startswith(served.url)
    assert "\n" not in str(error.value)
    assert len(ask(served, temperature=0.0)) == 3, "as it should be"
    assert len(ask(served, 3, temperature=0.8)) == 3, "two repetitions each may be an accident"
    # one prompt with two answers: it does sample
    served.answer = lambda body: completion(str(body["seed"] % 3) if body["messages"] == PROMPTS[1] else "same")
    assert len(ask(served, 8, temperature=0.8)) == 3


def test_passing_faults_are_tried_again_and_lasting_ones_told(served):
    served.faults = [(503, {}), (429, {})]
    assert len(ask(served, 1)) == 3
    assert len(served.requests) == 5
    served.faults = [(503, {"error": {"message": "busy"}})] * 9
    with pytest.raises(UserError, match=r"/chat/completions: no answer after 2 attempts: HTTP 503: busy$"):
        chat(served, attempts=2).sample(PROMPTS[:1], KEYS[:1], 1, **OPTIONS)
    served.faults = [(404, {"error": {"message": "no such model"}})]
    with pytest.raises(UserError, match=r"/chat/completions: small: HTTP 404: no such model$"):
        chat(served).sample(PROMPTS[:1], KEYS[:1], 1, **OPTIONS)


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [{}]},
        {"choices": [{"message": {"content": 3}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": "x"}}]},
        {"choices": 5},
        {"choices": [{"text": "x", "finish_reason": "stop"}]},
    ],
)
def test_answers_of_another_form_are_told(served, answer):
    served.answer = lambda body: answer
    with pytest.raises(UserError, match=r"/chat/completions: the answer has another form than that of the protocol$"):
        ask(served, 1)


def test_the_key_is_sent_and_never_shown(served):
    asked = chat(served, key="secret-word")
    asked.sample(PROMPTS[:1], KEYS[:1], 1, **OPTIONS)
    assert served.headers[0]["Authorization"] == "Bearer secret-word"
    assert "secret-word" not in repr(asked)


def test_keys_must_be_one_a_prompt(served):
    with pytest.raises(ValueError, match="3 prompts need as many different keys; there are 2"):
        chat(served).sample(PROMPTS, ["a", "b", "b"], 1, **OPTIONS)
    assert served.requests == []
