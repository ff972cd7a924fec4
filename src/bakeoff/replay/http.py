"""Replay an application's model calls by a hook in httpx, which most SDKs use.

The hook covers `httpx` and its successor `httpx2`, even for existing clients. Only model calls are
recorded: requests with the header of a model SDK, or to the path of a model API.
"""

import base64
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from bakeoff._kernel.json import parse_json
from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import InfraError
from bakeoff.replay.application import ApplicationCall, active_store, report_problem
from bakeoff.replay.store import MAX_RECORDED_BYTES, Recording, Store
from bakeoff.storage.redaction import Redactor, secrets_in, secrets_within

KIND = "http"
RECORDED_ELSEWHERE = "bakeoff.own"
"""The request extension that marks bakeoff's own model calls, which have recordings of another kind."""

MISSED = 424
"""The status of the answer to a request without a recording: no SDK retries it, and all show its message."""

_LIBRARIES = ("httpx", "httpx2")
_SDK_HEADERS = ("x-stainless-lang", "x-goog-api-client")
_MODEL_PATH = re.compile(
    r"/(?:chat/completions|embeddings|rerank|images/generations|api/(?:chat|generate|embed))$"
    r"|/v\d\w*/(?:\w+/)*(?:messages|responses|completions)$"
    r"|:(?:generateContent|streamGenerateContent|embedContent|batchEmbedContents|predict|rawPredict)$"
)
_SECRET_HEADERS = {"authorization", "proxy-authorization", "cookie"}
_ASKED_HEADERS = ("anthropic-beta", "openai-beta")  # headers that affect the answer
_KEPT_HEADERS = ("content-type", "x-request-id", "request-id")
_STREAM_ERROR = re.compile(rb'^(?:event: ?error\b|data: ?\{"error")', re.MULTILINE)
_STREAM_DONE = re.compile(rb"^data: ?\[DONE\]\s*$", re.MULTILINE)

_Handler = Callable[[Any, Any], Any]


class HttpAnswer(FrozenModel):
    """An HTTP response. A binary body is kept in base64."""

    status: int
    headers: dict[str, str]
    body: str
    encoded: bool = False

    @staticmethod
    def body_fields(content: bytes) -> dict[str, Any]:
        """Return the content as the fields `body` and `encoded`."""
        try:
            return {"body": content.decode(), "encoded": False}
        except UnicodeDecodeError:
            return {"body": base64.b64encode(content).decode(), "encoded": True}

    @property
    def content(self) -> bytes:
        """Return the body as bytes."""
        return base64.b64decode(self.body) if self.encoded else self.body.encode("utf-8", "surrogatepass")


class HttpRecording(Recording):
    """A request of the application and its answer."""

    kind: str = KIND
    answer: HttpAnswer


@contextmanager
def http_hooks() -> Iterator[None]:
    """Send model calls through httpx to the active store during the block."""
    originals: list[tuple[type, str, Any]] = []

    def hook(owner: type, method: str, make: Callable[[Any], Any]) -> None:
        original = getattr(owner, method)
        originals.append((owner, method, original))
        setattr(owner, method, make(original))

    try:
        for library in (import_module(name) for name in _LIBRARIES if find_spec(name) is not None):
            hook(library.HTTPTransport, "handle_request", partial(_sync_hook, library))
            hook(library.AsyncHTTPTransport, "handle_async_request", partial(_async_hook, library))
        if find_spec("aiohttp") is not None:
            hook(import_module("aiohttp").ClientSession, "_request", _aiohttp_guard)
        yield
    finally:
        for owner, method, original in reversed(originals):
            setattr(owner, method, original)


def _aiohttp_guard(original: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse model calls through aiohttp, used by Google's SDK, which cannot be replayed."""

    async def request(self: Any, method: str, url: Any, **options: Any) -> Any:
        headers = {str(name).lower() for name in options.get("headers") or ()}
        path = urlsplit(str(url)).path
        if active_store() is None or not _is_model_call(method, path, headers):
            return await original(self, method, url, **options)
        problem = (
            f"{method} {path} goes through aiohttp, which cannot be replayed: have the client use httpx "
            "(Google's: `http_options=HttpOptions(httpx_async_client=httpx.AsyncClient())`)"
        )
        report_problem(problem)
        raise InfraError(problem, permanent=True)

    return request


def _sync_hook(library: Any, original: _Handler) -> _Handler:
    stream = type("RecordedStream", (_SyncRecorder, library.SyncByteStream), {})

    def handle_request(transport: Any, request: Any) -> Any:
        store = _store_for(request)
        if store is None:
            return original(transport, request)
        request.read()
        exchange = _Exchange(library, store, request)
        if (answer := exchange.recorded()) is not None:
            return answer
        with exchange:
            return exchange.recording(original(transport, request), stream)

    return handle_request


def _async_hook(library: Any, original: _Handler) -> _Handler:
    stream = type("RecordedStream", (_AsyncRecorder, library.AsyncByteStream), {})

    async def handle_async_request(transport: Any, request: Any) -> Any:
        store = _store_for(request)
        if store is None:
            return await original(transport, request)
        await request.aread()
        exchange = _Exchange(library, store, request)
        if (answer := exchange.recorded()) is not None:
            return answer
        with exchange:
            return exchange.recording(await original(transport, request), stream)

    return handle_async_request


def _store_for(request: Any) -> Store | None:
    """Return the active store if the request is a model call, or else None."""
    if request.extensions.get(RECORDED_ELSEWHERE):
        return None
    return active_store() if _is_model_call(request.method, request.url.path, request.headers) else None


def _is_model_call(method: str, path: str, headers: Any) -> bool:
    return any(name in headers for name in _SDK_HEADERS) or bool(method == "POST" and _MODEL_PATH.search(path))


class _Exchange(AbstractContextManager["_Exchange"]):
    """One request and its answer. On an exception, the context frees the request's turn."""

    def __init__(self, library: Any, store: Store, request: Any) -> None:
        self._library = library
        question = _question(request)
        secrets = dict(sorted((_secrets(request) | secrets_within(question["body"])).items()))
        self._call = ApplicationCall(store, KIND, question, Redactor(secrets))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._call.failed()

    def recorded(self) -> Any:
        """Return the recorded response, an error response if it is unusable, or None."""
        try:
            recording = self._call.find(HttpRecording)
        except InfraError as error:
            details = {"type": "replay", "code": MISSED, "status": "REPLAY", "message": str(error)}
            headers = {"content-type": "application/json", "x-should-retry": "false"}
            return self._response(MISSED, headers, json.dumps({"type": "error", "error": details}).encode())
        if recording is None:
            return None
        return self._response(recording.answer.status, recording.answer.headers, recording.answer.content)

    def _response(self, status: int, headers: dict[str, str], content: bytes) -> Any:
        return self._library.Response(status, headers=headers, stream=self._library.ByteStream(content))

    def recording(self, response: Any, stream: type) -> Any:
        """Return the response with a stream that records it, unless it is not a success."""
        if 200 <= response.status_code < 300:
            response.stream = stream(response.stream, response, self)
        else:
            self._call.failed()
        return response

    def decompressed(self, response: Any, raw: bytes) -> bytes | None:
        """Return the decompressed body, or None if it is damaged."""
        try:
            content: bytes = self._library.Response(response.status_code, headers=response.headers, content=raw).content
        except self._library.DecodingError:
            return None
        return content

    def keep(self, response: Any, content: bytes | None) -> None:
        """Record the complete answer, unless it reports an error."""
        if content is None or _is_error(content):
            self._call.failed()
            return
        headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
        answer = HttpAnswer(status=response.status_code, headers=headers, **HttpAnswer.body_fields(content))
        self._call.keep(HttpRecording(asked=dict(self._call.key.asked), answer=answer))


class _Recorder:
    """Passes on the chunks of a stream, and records them when the stream is complete."""

    def __init__(self, inner: Any, response: Any, exchange: _Exchange) -> None:
        self._inner = inner
        self._response = response
        self._exchange = exchange
        self._chunks: list[bytes] = []
        self._bytes = 0
        self._over = False

    def _add(self, chunk: bytes) -> bytes:
        self._bytes += len(chunk)
        if self._bytes <= MAX_RECORDED_BYTES:
            self._chunks.append(chunk)
        return chunk

    def _complete(self) -> None:
        if self._over:
            return
        self._over = True
        if self._bytes > MAX_RECORDED_BYTES:
            report_problem(f"an answer of {self._bytes} bytes is not recorded: the limit is {MAX_RECORDED_BYTES}")
        else:
            self._exchange.keep(self._response, self._content())

    def _closed(self) -> None:
        """Record the stream if its reader closed it after the last event, not before."""
        if not self._over and _STREAM_DONE.search(self._content() or b""):
            self._complete()
        self._over = True

    def _content(self) -> bytes | None:
        return self._exchange.decompressed(self._response, b"".join(self._chunks))


class _SyncRecorder(_Recorder):
    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._inner:
            yield self._add(chunk)
        self._complete()

    def close(self) -> None:
        self._inner.close()
        self._closed()


class _AsyncRecorder(_Recorder):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            yield self._add(chunk)
        self._complete()

    async def aclose(self) -> None:
        await self._inner.aclose()
        self._closed()


def _question(request: Any) -> dict[str, Any]:
    """Return the request without keys and without parts that vary between runs."""
    url = urlsplit(str(request.url))
    query = parse_qsl(url.query, keep_blank_values=True)
    hidden = secrets_in({name: value or "?" for name, value in query})
    asked = urlencode(sorted((name, value) for name, value in query if name not in hidden))
    address = f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}" + (f"?{asked}" if asked else "")
    headers = {name: request.headers[name] for name in _ASKED_HEADERS if name in request.headers}
    question: dict[str, Any] = {"method": request.method, "url": address, "body": _asked_body(request)}
    return {**question, "headers": headers} if headers else question


def _asked_body(request: Any) -> Any:
    content: bytes = request.content
    boundary = re.search(r'boundary="?([^";]+)', request.headers.get("content-type", ""))
    if boundary:
        content = content.replace(boundary[1].encode(), b"boundary")
    try:
        return parse_json(content)
    except ValueError:
        return HttpAnswer.body_fields(content)["body"]


def _is_error(content: bytes) -> bool:
    """Return True if the body is an error, which some providers send with status 200."""
    if _STREAM_ERROR.search(content):
        return True
    try:
        answer = parse_json(content)
    except ValueError:
        return False
    return isinstance(answer, dict) and bool(answer.get("error"))


def _secrets(request: Any) -> dict[str, str]:
    """Return the secrets in headers and address, by name."""
    url = urlsplit(str(request.url))
    headers = {name.lower(): value for name, value in request.headers.items()}
    found = secrets_in(headers) | {name: value for name, value in headers.items() if name in _SECRET_HEADERS}
    found |= secrets_in(dict(parse_qsl(url.query)))
    if url.password:
        found["password"] = url.password
    for name in found.keys() & {"authorization", "proxy-authorization"}:
        found[name] = found[name].partition(" ")[2] or found[name]  # without the scheme: the key may occur elsewhere
    return found
