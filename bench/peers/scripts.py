"""Hold the script of each tool. `<cases>`, `<pause>` and `<at_once>` are filled in."""

BAKEOFF = """
import asyncio
from pathlib import Path

from bakeoff.engine.run import run
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec
from bakeoff.report.summary import summarise
from bakeoff.storage.run_folder import RunFolder
from bakeoff.subjects.function import function_subject


async def echo(prompt: str) -> str:
    if <pause>:
        await asyncio.sleep(<pause>)
    return prompt


plan = Plan(
    name="echo",
    cases=tuple(Case(id=f"case-{n}", prompt=f"say {n}", expected=f"say {n}") for n in range(<cases>)),
    subjects=(function_subject(echo, "echo"),),
    scorers=(ScorerSpec(kind="exact"),),
)


async def main() -> None:
    folder = Path("run")
    folder.mkdir()
    async for _ in run(plan, RunOptions(folder=folder, jobs=<at_once>)):
        pass
    print(summarise(plan, RunFolder(folder).latest_records(plan)).subjects[0].passed, "passed")


asyncio.run(main())
"""

BAKEOFF_EVALS = """
import asyncio

from bakeoff import eval_suite
from bakeoff.scorers import Exact


@eval_suite(data=[{"input": f"say {n}", "expected": f"say {n}"} for n in range(<cases>)], scorers=[Exact()])
async def test_echo(case):
    if <pause>:
        await asyncio.sleep(<pause>)
    return case.input
"""

PYTEST = """
import time

import pytest


@pytest.mark.parametrize("text", [f"say {n}" for n in range(<cases>)])
def test_echo(text):
    if <pause>:
        time.sleep(<pause>)
    assert text == text
"""

PYDANTIC_EVALS = """
import asyncio
from dataclasses import dataclass

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext


@dataclass
class Same(Evaluator[str, str, None]):
    def evaluate(self, ctx: EvaluatorContext[str, str, None]) -> bool:
        return ctx.output == ctx.expected_output


async def echo(prompt: str) -> str:
    if <pause>:
        await asyncio.sleep(<pause>)
    return prompt


cases = [Case(name=f"case-{n}", inputs=f"say {n}", expected_output=f"say {n}") for n in range(<cases>)]
dataset = Dataset(name="echo", cases=cases, evaluators=[Same()])
done = asyncio.run(dataset.evaluate(echo, progress=False, max_concurrency=<at_once>))
print(sum(case.assertions["Same"].value for case in done.cases), "passed")
"""

INSPECT = """
import asyncio

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import exact
from inspect_ai.solver import Generate, Solver, TaskState, solver


@solver
def echo() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if <pause>:
            await asyncio.sleep(<pause>)
        state.output = ModelOutput.from_content("echo", state.input_text)
        state.completed = True
        return state

    return solve


samples = [Sample(id=f"case-{n}", input=f"say {n}", target=f"say {n}") for n in range(<cases>)]
task = Task(dataset=MemoryDataset(samples), solver=echo(), scorer=exact())
[log] = eval(task, model="mockllm/model", log_dir="log", display="none", max_samples=<at_once>)
assert log.status == "success", log.error
print(round(log.results.scores[0].metrics["mean"].value * log.results.completed_samples), "passed")
"""

DEEPEVAL = '''
import asyncio

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase


class Same(BaseMetric):
    """Echoes, too: deepeval scores answers that are there already."""

    def __init__(self):
        self.threshold = 1.0
        self.async_mode = True

    def measure(self, test_case, *args, **kwargs):
        self.score = float(test_case.actual_output == test_case.expected_output)
        self.success = self.score >= self.threshold
        self.reason = ""
        return self.score

    async def a_measure(self, test_case, *args, **kwargs):
        if <pause>:
            await asyncio.sleep(<pause>)
        return self.measure(test_case)

    def is_successful(self):
        return self.success

    @property
    def __name__(self):
        return "Same"


cases = [
    LLMTestCase(input=f"say {n}", actual_output=f"say {n}", expected_output=f"say {n}") for n in range(<cases>)
]
done = evaluate(
    cases,
    [Same()],
    async_config=AsyncConfig(max_concurrent=<at_once>),
    display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
    cache_config=CacheConfig(write_cache=False),
)
print(sum(result.success for result in done.test_results), "passed")
'''

VITEST_EVALS = """
import { describeEval } from 'vitest-evals/legacy'; // data, task and scorers; its newer interface wants a harness

describeEval('echo', {
  data: async () => Array.from({ length: <cases> }, (_, n) => ({ input: `say ${n}`, expected: `say ${n}` })),
  task: async (input) => {
    if (<pause>) await new Promise((done) => setTimeout(done, 1000 * <pause>));
    return input;
  },
  scorers: [async ({ output, expected }) => ({ score: output === expected ? 1 : 0 })],
  threshold: 1,
});
"""
VITEST_CONFIG = """
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['*.eval.ts'], sequence: { concurrent: true }, maxConcurrency: <at_once>, reporters: ['dot'] },
});
"""

PROMPTFOO_PROVIDER = """
export default class Echo {
  id() { return 'echo'; }
  async callApi(prompt) {
    if (<pause>) await new Promise((done) => setTimeout(done, 1000 * <pause>));
    return { output: prompt };
  }
}
"""
