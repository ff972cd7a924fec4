"""Run an instrumented application through Bakeoff, in a process of its own: a provider can be set only once."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bakeoff import Case, Plan, RunOptions, ScorerSpec, function_subject, run

TRACER = trace.get_tracer("shop")  # before there is a provider, as at the top of a module
THREADS = ThreadPoolExecutor(2)


def fetch(prompt: str, around: context.Context) -> None:
    context.attach(around)  # only OpenTelemetry's context reaches the thread
    with TRACER.start_as_current_span(f"fetch {prompt}"):
        pass


async def answer(prompt: str) -> str:
    with TRACER.start_as_current_span(f"answer {prompt}", attributes={"words": 1}):
        await asyncio.sleep(0.01)
        with TRACER.start_as_current_span(f"search {prompt}"):
            await asyncio.sleep(0.01)
        around = context.get_current()
        await asyncio.get_running_loop().run_in_executor(THREADS, fetch, prompt, around)
        try:
            with TRACER.start_as_current_span(f"pay {prompt}"):
                raise ValueError("no money")
        except ValueError:
            return prompt


def answer_slowly(prompt: str) -> str:
    return asyncio.run(answer(prompt))


async def main(provider: str, folder: str) -> None:
    exporter = InMemorySpanExporter()
    if provider == "own":
        own = TracerProvider()
        own.add_span_processor(SimpleSpanProcessor(exporter))
        trace.set_tracer_provider(own)
    plan = Plan(
        name="spans",
        cases=tuple(Case(id=f"c{number}", prompt=f"c{number}") for number in range(6)),
        subjects=(function_subject(answer), function_subject(answer_slowly)),
        scorers=(ScorerSpec(kind="spans", options={"calls_of": {"fetch *": 1}, "max_spans": 4}),),
        threshold=1.0,
    )
    options = RunOptions(results=Path(folder), jobs=6, sandbox="process")
    records = [record async for record in run(plan, options)]
    for record in records:
        assert record.transcript is not None
        told: Any = record.transcript.metadata["spans"]
        names = [span["name"] for span in told["spans"]]
        case = record.case
        assert names == [f"answer {case}", f"search {case}", f"fetch {case}", f"pay {case}"], names
        assert [span["error"] for span in told["spans"]] == [None, None, None, "ValueError: no money"]
        assert told["spans"][0]["attributes"] == {"words": 1}
        assert [score.reason for score in record.scores] == [f"failed: pay {case} (ValueError: no money)"]
    print(f"{len(records)} cases with their own spans")
    print(f"exported: {len(exporter.get_finished_spans())}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
