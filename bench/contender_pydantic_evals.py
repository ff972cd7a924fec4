"""Instant trials through pydantic-evals, which writes no log: `cases`."""

import asyncio
import sys
import time
from dataclasses import dataclass

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext

from bench.measure import report


@dataclass
class Same(Evaluator[str, str, None]):
    def evaluate(self, ctx: EvaluatorContext[str, str, None]) -> bool:
        return ctx.output == ctx.expected_output


async def echo(prompt: str) -> str:
    return prompt


def main() -> None:
    count = int(sys.argv[1])
    cases = [Case(name=f"case-{n}", inputs=f"say {n}", expected_output=f"say {n}") for n in range(count)]
    dataset = Dataset(name="instant", cases=cases, evaluators=[Same()])
    started = time.perf_counter()
    done = asyncio.run(dataset.evaluate(echo, progress=False, max_concurrency=8))
    seconds = time.perf_counter() - started
    assert len(done.cases) == count
    report(count, seconds)


if __name__ == "__main__":
    main()
