"""Spans for OpenTelemetry, in the words of its conventions for generative AI. Off, nothing of it is imported.

A program that has set up tracing gets the spans where it wants them; otherwise they go to the collector that the usual
`OTEL_EXPORTER_OTLP_*` variables name. Spans say who was asked, how long it took and what it used, never what was said.
"""

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import Tracer

TRACING = "tracing"
"""The name of the resource under which a run's trials find it."""

Attributes: TypeAlias = Mapping[str, str | int | float | bool | list[str] | None]
Kind: TypeAlias = Literal["INTERNAL", "CLIENT"]


class Span:
    """Something that takes time. This one is written nowhere."""

    def note(self, attributes: Attributes) -> None:
        """What has come to be known of it; what is None is left out."""

    def failed(self, reason: str) -> None:
        """It did not do what it was to do, though nothing was raised."""


_NOWHERE = nullcontext(Span())


class Tracing:
    """Makes spans; each is inside the one that is open. This one makes none."""

    def span(self, name: str, attributes: Attributes, kind: Kind = "INTERNAL") -> AbstractContextManager[Span]:  # noqa: ARG002
        return _NOWHERE


OFF = Tracing()
_active: ContextVar[Tracing] = ContextVar("tracing", default=OFF)


def active_tracing() -> Tracing:
    """That of the run this task belongs to, for what is not given the run's resources because it is one of them."""
    return _active.get()


@contextmanager
def _activated(tracing: Tracing) -> Iterator[Tracing]:
    before = _active.get()
    _active.set(tracing)
    try:
        yield tracing
    finally:
        _active.set(before)


class _RealSpan(Span):
    def __init__(self, span: "OtelSpan") -> None:
        self._span = span

    def note(self, attributes: Attributes) -> None:
        self._span.set_attributes({name: value for name, value in attributes.items() if value is not None})

    def failed(self, reason: str) -> None:
        from opentelemetry.trace import StatusCode

        self._span.set_attribute("error.type", reason)
        self._span.set_status(StatusCode.ERROR)


class _RealTracing(Tracing):
    def __init__(self, tracer: "Tracer") -> None:
        self._tracer = tracer

    @contextmanager
    def span(self, name: str, attributes: Attributes, kind: Kind = "INTERNAL") -> Iterator[Span]:
        from opentelemetry.trace import SpanKind

        with self._tracer.start_as_current_span(
            name, kind=SpanKind[kind], record_exception=False, set_status_on_exception=False
        ) as made:
            span = _RealSpan(made)
            span.note(attributes)
            try:
                yield span
            except BaseException as error:
                span.failed(type(error).__name__)  # its text may hold what was said
                raise


@dataclass(frozen=True, slots=True)
class OpenTelemetry:
    """The resource: what is left to send is sent when it closes."""

    @property
    def key(self) -> str:
        return TRACING

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Tracing]:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider

        given = trace.get_tracer_provider()
        if isinstance(given, TracerProvider):
            with _activated(_RealTracing(given.get_tracer("bakeoff"))) as tracing:
                yield tracing
            return
        own = _exporting()
        try:
            with _activated(_RealTracing(own.get_tracer("bakeoff"))) as tracing:
                yield tracing
        finally:
            await asyncio.to_thread(own.shutdown)


def _exporting() -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "bakeoff"}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def check_tracing() -> None:
    """Raise where spans were asked for and cannot be made."""
    if not all(_is_there(module) for module in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")):
        raise UsageError("trace: OpenTelemetry is not installed: pip install 'bakeoff[otel]'")


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a package on the way to it
        return False
