"""Collect the OpenTelemetry spans that an application makes in this process, for each case by itself.

A span belongs to the case in whose context it is started, or to that of its parent, which reaches threads that were
given OpenTelemetry's context only. Spans of Bakeoff itself are left out.
"""

import importlib.util
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any
from weakref import WeakSet

from bakeoff._kernel.json import as_json

SPANS = "spans"
"""The key of the collector among resources, and of what it collected in a transcript's metadata."""

OWN_SCOPE = "bakeoff"  # of the spans that Bakeoff makes
_MOST = 1000  # spans of one case that are kept; the others are counted


class CollectedSpans:
    """The spans of one case."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self.count = 0
        self.ids: list[int] = []

    def add(self, span: Any) -> None:
        self.count += 1
        if len(self.spans) < _MOST:
            self.spans.append(_as_data(span))

    def told(self) -> dict[str, Any]:
        """Return the spans in the order of their starts, and how many there were."""
        return {"count": self.count, "spans": sorted(self.spans, key=lambda span: span["started"])}


_collecting: ContextVar[CollectedSpans | None] = ContextVar("collecting", default=None)
_by_span: dict[int, CollectedSpans] = {}  # of cases that run now
_watched: "WeakSet[Any]" = WeakSet()  # providers with our processor


@contextmanager
def collecting() -> Iterator[CollectedSpans]:
    """Collect the spans that are started inside the block."""
    _watch()
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
        """Yield what opens the collection of a case."""
        yield collecting


def can_collect() -> bool:
    """Tell whether OpenTelemetry's SDK is installed."""
    return importlib.util.find_spec("opentelemetry") is not None and (
        importlib.util.find_spec("opentelemetry.sdk") is not None
    )


def _watch() -> None:
    """Add our processor to the application's provider. If it has set none, set one, which exports nothing."""
    from opentelemetry import trace

    provider: Any = trace.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):
        provider = _own_provider()
        trace.set_tracer_provider(provider)
    if provider not in _watched:
        _watched.add(provider)
        provider.add_span_processor(_processor())


@cache
def _own_provider() -> Any:
    from opentelemetry.sdk.trace import TracerProvider

    return TracerProvider(shutdown_on_exit=False)


def exports_nothing(provider: object) -> bool:
    """Tell whether a provider is the one that is set here where the application has none."""
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
