"""Send OpenTelemetry spans by the conventions for generative AI. If tracing is off, import nothing.

If the program has set up tracing, its exporters receive the spans; otherwise the collector named by
the usual `OTEL_EXPORTER_OTLP_*` variables does. Spans hold names, durations, usage and scores, but
no prompts or answers. Names are redacted, because models choose some of them.

`collecting` does the opposite: it collects the spans that an application creates, for each case. A
span belongs to the case in whose context it was started or, in threads that know only
OpenTelemetry's context, to the case of its parent. Spans of Bakeoff itself are left out.
"""

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias
from weakref import WeakSet

from bakeoff._kernel.json import as_json
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import Tracer


SPANS = "spans"
"""The key of the collector among resources, and of the collected spans in a transcript's metadata."""

OWN_SCOPE = "bakeoff"  # the scope of the spans that Bakeoff creates
_MAX_COUNT = 1000  # spans kept per case; all are counted


class CollectedSpans:
    """The spans of one case."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self.count = 0
        self.ids: list[int] = []

    def add(self, span: Any) -> None:
        """Count a finished span, and keep it unless the limit is reached."""
        self.count += 1
        if len(self.spans) < _MAX_COUNT:
            self.spans.append(_as_data(span))

    def told(self) -> dict[str, Any]:
        """Return the kept spans in the order of their starts, and the number of all spans."""
        return {"count": self.count, "spans": sorted(self.spans, key=lambda span: span["started"])}


_collecting: ContextVar[CollectedSpans | None] = ContextVar("collecting", default=None)
_by_span: dict[int, CollectedSpans] = {}  # of cases that are running
_watched: "WeakSet[Any]" = WeakSet()  # providers with our processor


@contextmanager
def collecting() -> Iterator[CollectedSpans]:
    """Collect the spans that are started inside the block."""
    from opentelemetry import trace

    provider: Any = trace.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):  # the application has set none
        provider = _own_provider()
        trace.set_tracer_provider(provider)
    if provider not in _watched:
        _watched.add(provider)
        provider.add_span_processor(_processor())
    collected = CollectedSpans()
    before = _collecting.set(collected)
    try:
        yield collected
    finally:
        _collecting.reset(before)
        for span_id in collected.ids:
            _by_span.pop(span_id, None)


class SpanCollection:
    """The resource of scorers that look at spans."""

    key = SPANS

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Any]:
        """Yield the function that starts to collect the spans of a case."""
        yield collecting


def can_collect() -> bool:
    """Return True if OpenTelemetry's SDK is installed."""
    return _are_installed("opentelemetry.sdk")


@cache
def _own_provider() -> Any:
    from opentelemetry.sdk.trace import TracerProvider

    return TracerProvider(shutdown_on_exit=False)


def exports_nothing(provider: object) -> bool:
    """Return True if this is Bakeoff's placeholder for a missing provider."""
    return _own_provider.cache_info().currsize > 0 and provider is _own_provider()


@cache
def _processor() -> Any:
    from opentelemetry.sdk.trace import SpanProcessor

    class Processor(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002 - the SDK's signature
            parent = span.parent.span_id if span.parent else 0
            collected = _collecting.get() or _by_span.get(parent)
            if collected is not None and span.instrumentation_scope.name != OWN_SCOPE:
                _by_span[span.context.span_id] = collected
                collected.ids.append(span.context.span_id)

        def on_end(self, span: Any) -> None:
            collected = _by_span.get(span.context.span_id)
            if collected is not None:
                collected.add(span)

    return Processor()


def _as_data(span: Any) -> dict[str, Any]:
    from opentelemetry.trace import StatusCode

    failed = span.status.status_code is StatusCode.ERROR
    raised = (event.attributes or {} for event in span.events if event.name == "exception")
    types = [str(each.get("exception.type", "")) for each in raised]
    return {
        "name": span.name,
        "id": f"{span.context.span_id:016x}",
        "parent": f"{span.parent.span_id:016x}" if span.parent else None,
        "started": span.start_time / 1e9,
        "ms": ((span.end_time or span.start_time) - span.start_time) / 1e6,
        "error": (span.status.description or next(iter(types), "") or "error") if failed else None,
        "attributes": as_json(dict(span.attributes or {})),
    }


TRACING = "tracing"
"""The key of the tracing among resources."""

Attribute: TypeAlias = str | int | float | bool | list[str]
Attributes: TypeAlias = Mapping[str, Attribute | None]
Kind: TypeAlias = Literal["INTERNAL", "CLIENT"]
Redact: TypeAlias = Callable[[str], str]


class TraceSpan:
    """A span. This base class records nothing."""

    def note(self, attributes: Attributes) -> None:
        """Set the attributes that are not None."""

    def event(self, name: str, attributes: Attributes) -> None:
        """Add an event with the attributes that are not None."""

    def failed(self, reason: str) -> None:
        """Mark the span as failed, although no exception was raised."""


_NOWHERE = nullcontext(TraceSpan())


class Tracing:
    """Creates nested spans. This base class records none."""

    def span(self, name: str, attributes: Attributes, kind: Kind = "INTERNAL") -> AbstractContextManager[TraceSpan]:  # noqa: ARG002
        """Return a context manager that opens a span and yields it."""
        return _NOWHERE


OFF = Tracing()
_active: ContextVar[Tracing] = ContextVar("tracing", default=OFF)


def active_tracing() -> Tracing:
    """Return the tracing of the current run, for resources, which are not given others."""
    return _active.get()


class _RealSpan(TraceSpan):
    def __init__(self, span: "OtelSpan", redact: Redact) -> None:
        self._span, self._redact = span, redact

    def note(self, attributes: Attributes) -> None:
        self._span.set_attributes(self._kept(attributes))

    def event(self, name: str, attributes: Attributes) -> None:
        self._span.add_event(name, self._kept(attributes))

    def _kept(self, attributes: Attributes) -> dict[str, Attribute]:
        kept = {name: value for name, value in attributes.items() if value is not None}
        for name, value in kept.items():
            if isinstance(value, str | list):
                kept[name] = self._redact(value) if isinstance(value, str) else [self._redact(each) for each in value]
        return kept

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
    """The resource that exports spans. `redact` removes secrets from names."""

    redact: Redact = str
    key: ClassVar = TRACING

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Tracing]:
        """Yield the tracing of a run. At the end, send the remaining spans."""
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
    if not _are_installed("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"):
        raise UsageError("trace: OpenTelemetry is not installed: pip install 'bakeoff[otel]'")


def _are_installed(*modules: str) -> bool:
    try:
        return all(importlib.util.find_spec(module) is not None for module in modules)
    except ModuleNotFoundError:  # a parent package is missing
        return False
