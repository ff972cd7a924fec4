"""Emit OpenTelemetry spans by the conventions for generative AI. Nothing is imported when tracing is off.

A program that has set up tracing receives the spans; otherwise they go to the collector that the usual
`OTEL_EXPORTER_OTLP_*` variables name. Spans hold names, durations, usage and scores, never prompts or answers. Models
choose some of the names, so these are redacted.
"""

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from bakeoff._kernel.spans import OWN_SCOPE, exports_nothing
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import Tracer

TRACING = "tracing"
"""The key of the tracing resource."""

Attribute: TypeAlias = str | int | float | bool | list[str]
Attributes: TypeAlias = Mapping[str, Attribute | None]
Kind: TypeAlias = Literal["INTERNAL", "CLIENT"]
Redact: TypeAlias = Callable[[str], str]


class TraceSpan:
    """A span that is not recorded."""

    def note(self, attributes: Attributes) -> None:
        """Set attributes; those that are None are left out."""

    def event(self, name: str, attributes: Attributes) -> None:
        """Add an event; attributes that are None are left out."""

    def failed(self, reason: str) -> None:
        """Mark the span as failed where no exception was raised."""


_NOWHERE = nullcontext(TraceSpan())


class Tracing:
    """Makes nested spans. This implementation makes none."""

    def span(self, name: str, attributes: Attributes, kind: Kind = "INTERNAL") -> AbstractContextManager[TraceSpan]:  # noqa: ARG002
        return _NOWHERE


OFF = Tracing()
_active: ContextVar[Tracing] = ContextVar("tracing", default=OFF)


def active_tracing() -> Tracing:
    """Return the tracing of the current run, for code that is itself a resource and is not given the others."""
    return _active.get()


class _RealSpan(TraceSpan):
    def __init__(self, span: "OtelSpan", redact: Redact) -> None:
        self._span, self._redact = span, redact

    def note(self, attributes: Attributes) -> None:
        self._span.set_attributes(self._kept(attributes))

    def event(self, name: str, attributes: Attributes) -> None:
        self._span.add_event(name, self._kept(attributes))

    def _kept(self, attributes: Attributes) -> dict[str, Attribute]:
        return {name: _redacted(value, self._redact) for name, value in attributes.items() if value is not None}

    def failed(self, reason: str) -> None:
        from opentelemetry.trace import StatusCode

        self._span.set_attribute("error.type", self._redact(reason))
        self._span.set_status(StatusCode.ERROR)


class _RealTracing(Tracing):
    def __init__(self, tracer: "Tracer", redact: Redact = str) -> None:
        self._tracer, self._redact = tracer, redact

    @contextmanager
    def span(self, name: str, attributes: Attributes, kind: Kind = "INTERNAL") -> Iterator[TraceSpan]:
        from opentelemetry.trace import SpanKind

        with self._tracer.start_as_current_span(
            self._redact(name), kind=SpanKind[kind], record_exception=False, set_status_on_exception=False
        ) as made:
            span = _RealSpan(made, self._redact)
            span.note(attributes)
            try:
                yield span
            except BaseException as error:
                span.failed(type(error).__name__)  # the message may contain parts of a prompt
                raise


@dataclass(frozen=True, slots=True)
class OpenTelemetry:
    """The resource. Closing it sends the remaining spans. `redact` takes secrets out of names."""

    redact: Redact = str

    @property
    def key(self) -> str:
        return TRACING

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Tracing]:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider

        given, before = trace.get_tracer_provider(), _active.get()
        theirs = isinstance(given, TracerProvider) and not exports_nothing(given)
        own = None if theirs else _exporting()
        tracing = _RealTracing((own or given).get_tracer(OWN_SCOPE), self.redact)
        _active.set(tracing)
        try:
            yield tracing
        finally:
            _active.set(before)
            if own is not None:
                await asyncio.to_thread(own.shutdown)


def _redacted(value: Attribute, redact: Redact) -> Attribute:
    if isinstance(value, list):
        return [redact(each) for each in value]
    return redact(value) if isinstance(value, str) else value


def _exporting() -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "bakeoff"}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def check_tracing() -> None:
    """Raise UsageError if tracing was asked for and OpenTelemetry is not installed."""
    if not all(_is_there(module) for module in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")):
        raise UsageError("trace: OpenTelemetry is not installed: pip install 'bakeoff[otel]'")


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False
