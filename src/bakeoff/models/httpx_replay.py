"""Replay of the model calls that an application makes through its own SDK: a hook in httpx, on which SDKs are built.

It is there only while a tape is on, in `httpx` and in its successor `httpx2`, for clients made before and after. Only
calls of models are recorded: those that carry the mark of an SDK, or go to where models are asked. Whatever else goes
through httpx is none of its business.
"""

import base64
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from bakeoff.errors import InfraError
from bakeoff.replay.store import MOST_BYTES, OWN, Request, Tape, mark_problem, tape_on
from bakeoff.storage.redaction import Redactor, secrets_in, secrets_within

KIND = "http"
MISSED = 424
"""The status of the answer that there is when there is none: no SDK tries again, and each shows the message."""

_LIBRARIES = ("httpx", "httpx2")
_SDK_MARKS = ("x-stainless-lang", "x-goog-api-client")
_MODEL_PATH = re.compile(
    r"/(?:chat/completions|embeddings|rerank|images/generations|api/(?:chat|generate|embed))$"
    r"|/v\d\w*/(?:\w+/)*(?:messages|responses|completions)$"
    r"|:(?:generateContent|streamGenerateContent|embedContent|batchEmbedContents|predict|rawPredict)$"
)
_ALWAYS_SECRET = {"authorization", "proxy-authorization", "cookie"}
_ASKED_HEADERS = ("anthropic-beta", "openai-beta")  # they change the answer
_KEPT_HEADERS = ("content-type", "x-request-id", "request-id")
_STREAM_ERROR = re.compile(rb'^(?:event: ?error\b|data: ?\{"error")', re.MULTILINE)
_STREAM_DONE = re.compile(rb"^data: ?\[DONE\]\s*$", re.MULTILINE)


@contextmanager
def httpx_on_tape() -> Iterator[None]:
    """While this lasts, model calls through httpx pass the tape that is on."""
    restored: list[tuple[type, str, Any]] = []
    try:
        for name in _LIBRARIES:
            if find_spec(name) is not None:
                restored += _hooked(import_module(name))
        if find_spec("aiohttp") is not None:
            restored += _guarded(import_module("aiohttp"))
        yield
    finally:
        for owner, method, original in reversed(restored):
            setattr(owner, method, original)


def _hooked(library: Any) -> list[tuple[type, str, Any]]:
    sync, later = library.HTTPTransport, library.AsyncHTTPTransport
    originals = [(sync, "handle_request", sync.handle_request)]
    originals += [(later, "handle_async_request", later.handle_async_request)]
    sync.handle_request = _sync_hook(library, sync.handle_request)
    later.handle_async_request = _async_hook(library, later.handle_async_request)
    return originals


def _guarded(aiohttp: Any) -> list[tuple[type, str, Any]]:
    """Google's SDK takes aiohttp where it is installed. Calls that pass us by must not look as if replayed."""
    session = aiohttp.ClientSession
    original = session._request

    async def request(self: Any, method: str, url: Any, **options: Any) -> Any:
        headers = {str(name).lower() for name in options.get("headers") or ()}
        path = urlsplit(str(url)).path
        if tape_on() is None or not (headers & {*_SDK_MARKS} or (method == "POST" and _MODEL_PATH.search(path))):
            return await original(self, method, url, **options)
        problem = (
            f"{method} {path} goes through aiohttp, which cannot be replayed: have the client use httpx "
            "(Google's: `http_options=HttpOptions(httpx_async_client=httpx.AsyncClient())`)"
        )
        mark_problem(problem)
        raise InfraError(problem, permanent=True)

    session._request = request
    return [(session, "_request", original)]


def _sync_hook(library: Any, original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    teed = type("Teed", (_SyncTee, library.SyncByteStream), {})

    def handle_request(transport: Any, request: Any) -> Any:
        tape = tape_on()
        if tape is None or not is_model_call(request):
            return original(transport, request)
        request.read()
        exchange = _Exchange(library, tape, request)
        if (answer := exchange.recorded()) is not None:
            return answer
        with exchange:
            response = original(transport, request)
        return exchange.teed(response, teed)

    return handle_request


def _async_hook(library: Any, original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    teed = type("Teed", (_AsyncTee, library.AsyncByteStream), {})

    async def handle_async_request(transport: Any, request: Any) -> Any:
        tape = tape_on()
        if tape is None or not is_model_call(request):
            return await original(transport, request)
        await request.aread()
        exchange = _Exchange(library, tape, request)
        if (answer := exchange.recorded()) is not None:
            return answer
        with exchange:
            response = await original(transport, request)
        return exchange.teed(response, teed)

    return handle_async_request


def is_model_call(request: Any) -> bool:
    if request.extensions.get(OWN):
        return False
    asks = request.method == "POST" and _MODEL_PATH.search(request.url.path)
    return bool(asks) or any(mark in request.headers for mark in _SDK_MARKS)


class _Exchange:
    """One request and its answer. Left by an exception, it was made in vain."""

    def __init__(self, library: Any, tape: Tape, request: Any) -> None:
        self._library = library
        self._tape = tape
        question = _question(request)
        secrets = _secrets(request) | secrets_within(question["body"])
        self._secrets = _redactor(tuple(sorted(secrets.items())))
        self._request: Request = tape.request(KIND, question, self._secrets)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.lost()

    def recorded(self) -> Any:
        """The recorded answer; an error of ours where there should be one and is none, or it cannot be read."""
        try:
            taped = self._tape.find(self._request)
            return None if taped is None else self._response(**_answer(taped.answer))
        except InfraError as error:
            self.lost()
            return self._refusal(str(error))
        except (KeyError, TypeError, ValueError) as error:
            self.lost()
            problem = f"recording {self._request.asked.digest} cannot be read, delete it: {error}"
            mark_problem(problem)
            return self._refusal(problem)

    def _refusal(self, message: str) -> Any:
        body = {"type": "error", "error": {"type": "replay", "code": MISSED, "status": "REPLAY", "message": message}}
        headers = {"content-type": "application/json", "x-should-retry": "false"}
        return self._response(MISSED, headers, json.dumps(body).encode())

    def _response(self, status: int, headers: dict[str, str], content: bytes) -> Any:
        return self._library.Response(status, headers=headers, stream=self._library.ByteStream(content))

    def teed(self, response: Any, stream: type) -> Any:
        if 200 <= response.status_code < 300:
            response.stream = stream(response.stream, response, self)
        else:
            self.lost()
        return response

    def lost(self) -> None:
        self._request.give_back()

    def plain(self, response: Any, raw: bytes) -> bytes | None:
        """The body without its compression; None where it does not come off."""
        try:
            whole = self._library.Response(response.status_code, headers=response.headers, content=raw)
        except self._library.DecodingError:
            return None
        content: bytes = whole.content
        return content

    def kept(self, response: Any, plain: bytes | None) -> None:
        """The whole answer has been heard."""
        if plain is None or _is_error(plain):
            self.lost()
            return
        headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
        answer = {"status": response.status_code, "headers": headers, **_body(plain)}
        self._tape.keep(self._request, answer, self._secrets)


class _Tee:
    """Hands on what arrives, and remembers it until all has arrived."""

    def __init__(self, inner: Any, response: Any, exchange: _Exchange) -> None:
        self._inner = inner
        self._response = response
        self._exchange = exchange
        self._heard: list[bytes] = []
        self._bytes = 0
        self._over = False

    def _hear(self, chunk: bytes) -> bytes:
        self._bytes += len(chunk)
        if self._bytes <= MOST_BYTES:
            self._heard.append(chunk)
        return chunk

    def _whole(self) -> None:
        if self._over:
            return
        self._over = True
        if self._bytes > MOST_BYTES:
            mark_problem(f"an answer of {self._bytes} bytes is not recorded: {MOST_BYTES} is the most")
        else:
            self._exchange.kept(self._response, self._plain())

    def _left(self) -> None:
        """Who reads a stream of events leaves it after the last one; left before, the answer is not known."""
        if not self._over and _STREAM_DONE.search(self._plain() or b""):
            self._whole()
        self._over = True

    def _plain(self) -> bytes | None:
        return self._exchange.plain(self._response, b"".join(self._heard))


class _SyncTee(_Tee):
    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._inner:
            yield self._hear(chunk)
        self._whole()

    def close(self) -> None:
        self._inner.close()
        self._left()


class _AsyncTee(_Tee):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            yield self._hear(chunk)
        self._whole()

    async def aclose(self) -> None:
        await self._inner.aclose()
        self._left()


def _question(request: Any) -> dict[str, Any]:
    """The request without keys and without what differs from run to run."""
    url = urlsplit(str(request.url))
    query = parse_qsl(url.query, keep_blank_values=True)
    hidden = secrets_in({name: value or "?" for name, value in query})
    host = url.netloc.rpartition("@")[2]
    asked = urlencode(sorted((name, value) for name, value in query if name not in hidden))
    headers = {name: request.headers[name] for name in _ASKED_HEADERS if name in request.headers}
    address = f"{url.scheme}://{host}{url.path}" + (f"?{asked}" if asked else "")
    question: dict[str, Any] = {"method": request.method, "url": address, "body": _asked_body(request)}
    return {**question, "headers": headers} if headers else question


def _asked_body(request: Any) -> Any:
    content: bytes = request.content
    boundary = re.search(r'boundary="?([^";]+)', request.headers.get("content-type", ""))
    if boundary:
        content = content.replace(boundary[1].encode(), b"boundary")
    try:
        return json.loads(content)
    except ValueError:
        return _body(content)["body"]


def _body(content: bytes) -> dict[str, Any]:
    try:
        return {"body": content.decode()}
    except UnicodeDecodeError:
        return {"body": base64.b64encode(content).decode(), "encoded": True}


def _answer(answer: dict[str, Any]) -> dict[str, Any]:
    body = answer["body"]
    content = base64.b64decode(body) if answer.get("encoded") else body.encode("utf-8", "surrogatepass")
    return {"status": int(answer["status"]), "headers": dict(answer["headers"]), "content": content}


def _is_error(content: bytes) -> bool:
    """Some providers say 200 and then that it went wrong."""
    if _STREAM_ERROR.search(content):
        return True
    try:
        answer = json.loads(content)
    except ValueError:
        return False
    return isinstance(answer, dict) and bool(answer.get("error"))


def _secrets(request: Any) -> dict[str, str]:
    """What came with the request that nobody else may see, by the name of its place."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    found = secrets_in(headers) | {name: value for name, value in headers.items() if name in _ALWAYS_SECRET}
    found |= secrets_in(dict(parse_qsl(urlsplit(str(request.url)).query)))
    if password := urlsplit(str(request.url)).password:
        found["password"] = password
    for name in found.keys() & {"authorization", "proxy-authorization"}:
        found[name] = found[name].partition(" ")[2] or found[name]  # without the scheme, as it may stand elsewhere
    return found


@lru_cache(maxsize=64)
def _redactor(secrets: tuple[tuple[str, str], ...]) -> Redactor:
    return Redactor(dict(secrets))
