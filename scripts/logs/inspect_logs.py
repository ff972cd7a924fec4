# mypy: ignore-errors
"""Make the logs of Inspect in tests/logs/logs. Made with inspect-ai 0.3.285; no network is needed.

.venv/bin/python scripts/logs/inspect_logs.py tests/logs/logs
"""

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from inspect_ai import Epochs, Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Scorer, Target, accuracy, includes, mean, model_graded_qa, scorer
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver, use_tools
from inspect_ai.tool import Tool, tool

SAMPLES = [
    Sample(id="easy", input="What is 1 + 1?", target="2", metadata={"level": "easy"}),
    Sample(id="tool", input="What is the sum of 20 and 22?", target=["42"], metadata={"level": "hard"}),
    Sample(id="sometimes", input="Is it Monday?", target="yes", metadata={"level": "hard"}),
    Sample(id="wrong", input="What is the capital of Atlantis?", target="Poseidonis"),
    Sample(id="broken", input="This one breaks.", target="never"),
]


@tool
def add() -> Tool:
    async def execute(x: int, y: int) -> int:
        """Add two numbers.

        Args:
            x: One of them.
            y: The other.
        """
        return x + y

    return execute


@solver
def breaks() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        if state.sample_id == "broken":
            raise ConnectionError("connection reset by peer")
        return state

    return solve


@scorer(metrics={"brevity": [mean()], "polite": [accuracy()]})
def style() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        polite = "C" if "please" in state.output.completion else "I"
        return Score(value={"brevity": 0.25, "polite": polite}, explanation="by length and words")

    return score


class Answers:
    """Answer without any model. Every second question about Monday gets a right answer."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, messages: list[Any], *_: Any) -> ModelOutput:
        said = messages[-1].text
        if messages[-1].role == "tool":
            made = ModelOutput.from_content("mock", f"The sum is {said}, please.")
        elif "sum of 20" in said:
            made = ModelOutput.for_tool_call("mock", "add", {"x": 20, "y": 22}, tool_call_id="call-1")
        elif "Monday" in said:
            self.asked += 1
            made = ModelOutput.from_content("mock", "yes" if self.asked % 2 else "no")
        else:
            made = ModelOutput.from_content("mock", "2" if "1 + 1" in said else "I do not know <b>this</b>.")
        made.usage = ModelUsage(input_tokens=20, output_tokens=5, total_tokens=35, input_tokens_cache_read=10)
        return made


def without_paths(log: EvalLog) -> EvalLog:
    """Return the log without the paths of this machine, which stand in tracebacks and functions, and without events."""
    text = re.sub(r'(?:/[^/\s"\\]+)+/(?=[^/\s"\\]+\.py)', "", log.model_dump_json())
    clean = EvalLog.model_validate_json(text)
    for sample in clean.samples or []:
        sample.events = []
        if sample.error:
            sample.error.traceback = sample.error.traceback_ansi = "\n".join(sample.error.traceback.splitlines()[-3:])
    return clean


def adds(wrong: set[int], name: str) -> Any:
    """Return a model that adds, except where it is wrong."""

    def answer(messages: list[Any], *_: Any) -> ModelOutput:
        number = int(messages[-1].text.split()[2])
        made = ModelOutput.from_content("mock", str(2 * number + (number in wrong)))
        made.usage = ModelUsage(input_tokens=8, output_tokens=1, total_tokens=9)
        return made

    return get_model(f"mockllm/{name}", custom_outputs=answer, memoize=False)


def grades(*_: Any) -> ModelOutput:
    """Return the answer of a judge."""
    made = ModelOutput.from_content("mock", "It is right.\nGRADE: C")
    made.usage = ModelUsage(input_tokens=100, output_tokens=5, total_tokens=105)
    return made


def write(task: Task, model: Any, path: Path, **more: Any) -> None:
    """Evaluate a task, and keep its log."""
    with tempfile.TemporaryDirectory() as logs:
        [log] = eval(task, model=model, log_dir=logs, display="none", log_format="eval", max_samples=1, **more)
        write_eval_log(without_paths(read_eval_log(log.location)), str(path))
    print(path.name, [(score.name, score.reducer, score.metrics) for score in log.results.scores])


def pairs(target: Path) -> None:
    """Write two logs of 16 cases to compare, and one whose epochs are reduced and which a model graded."""
    sums = [
        Sample(id=number, input=f"What is {number} + {number}?", target=str(2 * number)) for number in range(10, 26)
    ]
    for name, wrong in (("a", set(range(13, 24))), ("b", {13, 25})):
        write(
            Task(sums, name="sums", solver=generate(), scorer=includes()),
            adds(wrong, "adder"),
            target / "pair" / f"{name}.eval",
        )
    asked = Task(
        SAMPLES[:4], name="reduced", solver=[use_tools(add()), generate()], scorer=[includes(), model_graded_qa()]
    )
    grader = get_model("mockllm/grader", custom_outputs=grades, memoize=False)
    model = get_model("mockllm/model", custom_outputs=Answers(), memoize=False)
    epochs = Epochs(3, ["mean", "max", "pass_at_2"])
    write(asked, model, target / "reduced.eval", epochs=epochs, model_roles={"grader": grader})


def main(target: Path) -> None:
    """Write one log in each format: one with several scorers, and two of one scorer to compare."""
    wanted = {
        "several-scorers.eval": [includes(), style()],
        "inspect.json": [includes()],
        "inspect.eval": [includes()],
    }
    for name, scorers in wanted.items():
        task = Task(SAMPLES, name="sums", solver=[breaks(), use_tools(add()), generate()], scorer=scorers)
        model = get_model("mockllm/model", custom_outputs=Answers(), memoize=False)
        with tempfile.TemporaryDirectory() as logs:
            [log] = eval(
                task, model=model, epochs=2, fail_on_error=False, log_dir=logs, display="none", max_samples=1,
                log_format="eval",
            )  # fmt: skip
            write_eval_log(without_paths(read_eval_log(log.location)), str(target / name))
        print(name, [(score.name, score.metrics) for score in log.results.scores])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    pairs(Path(sys.argv[1]))
