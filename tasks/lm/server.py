"""A server that speaks the OpenAI protocol: requests, tried again where that may help, with one-line errors."""

import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from tasks.stage import UserError

PASSING = (408, 429, 500, 502, 503, 504)  # HTTP statuses worth another try


@dataclass(frozen=True)
class Server:
    """A model behind `url`, which is as OpenAI clients take it, mostly ending in ``/v1``.

    Args:
        timeout: seconds until a request counts as failed.
        key: sent as a bearer token.
        parallel: requests at a time; the server batches them.
        attempts: tries a request, for HTTP statuses 408, 429 and 5xx and for connections that fail; after the k-th, a
            pause of ``pause_s · 2^(k-1)`` seconds, or longer where the server asks for it (Retry-After).
    """

    url: str
    model: str
    timeout: float = 120.0
    key: str | None = field(default=None, repr=False)
    parallel: int = 8
    attempts: int = 5
    pause_s: float = 0.5

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise UserError(f"{self.url}: not the address of a server; http:// or https:// is needed")
        object.__setattr__(self, "url", self.url.rstrip("/"))

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to ``POST {url}/{path}``, which has choices.

        Raises:
            Refused: the server does not take the request.
            UserError: no answer after all attempts, or one of another form.
        """
        content = json.dumps(body).encode()
        for attempt in range(1, self.attempts + 1):
            wait = self.pause_s * 2 ** (attempt - 1)
            try:
                answer = json.loads(self._open(path, content))
            except urllib.error.HTTPError as error:
                said = f"HTTP {error.code}: {_said(error)}"
                if error.code == 404:
                    raise Refused(f"{self.url}/{path}: {self.model}: {said}{self._offered()}", 404) from None
                if error.code not in PASSING:
                    raise Refused(f"{self.url}/{path}: {said}", error.code) from None
                asked = error.headers.get("Retry-After", "")
                wait = max(wait, min(float(asked), 60.0)) if asked.isdecimal() else wait
            except (OSError, http.client.HTTPException) as error:  # URLError and timeouts are OSErrors
                said = str(error) or type(error).__name__
            except ValueError:
                raise UserError(f"{self.url}/{path}: the answer is not JSON; is this the server's address?") from None
            else:
                if not isinstance(answer, dict) or not answer.get("choices"):
                    raise UserError(f"{self.url}/{path}: the answer has no choices; is this the server's address?")
                return answer
            if attempt < self.attempts:
                time.sleep(wait)
        raise UserError(f"{self.url}/{path}: no answer after {self.attempts} attempts: {said}")

    def _open(self, path: str, content: bytes | None = None) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(f"{self.url}/{path}", data=content, headers=headers)
        with _OPENER.open(request, timeout=self.timeout) as answer:
            return answer.read()

    def _offered(self) -> str:
        try:
            names = [str(model["id"]) for model in json.loads(self._open("models"))["data"]]
        except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
            return ""
        return f"; the server offers {', '.join(names)}"


class Refused(UserError):
    """An HTTP status that says no, and would again."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirection is told, not followed: it would take the key to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def _said(error: urllib.error.HTTPError) -> str:
    """The message in the body of a refusal, on one line."""
    text = error.read(10_000).decode("utf-8", "replace")
    try:
        content = json.loads(text)
        content = content.get("error", content)
        text = str(content.get("message") or content.get("detail") or text) if isinstance(content, dict) else content
    except (ValueError, AttributeError):
        pass
    return " ".join(str(text).split())[:300] or str(error.reason)
