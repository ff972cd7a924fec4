# mypy: ignore-errors
"""Make the test run of DeepEval in tests/logs/logs. Made with deepeval 4.3.1; needs no network.

python scripts/logs/deepeval_run.py tests/logs/logs
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_DISABLE_DOTENV": "1", "CI": "1"}

from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, DisplayConfig, ErrorConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase, ToolCall


class Overlap(BaseMetric):
    """The share of expected words that an answer has."""

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold
        self.async_mode = False

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        if "Nowhere" in test_case.input:
            raise ConnectionError("503 Service Unavailable")
        wanted = set(test_case.expected_output.split())
        self.score = len(wanted & set(test_case.actual_output.split())) / len(wanted)
        self.reason = f"{self.score:.0%} of the words"
        self.success = self.score >= self.threshold
        return self.score

    def is_successful(self) -> bool:
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "Overlap"


class Short(Overlap):
    """An answer of at most 30 characters."""

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        self.score = float(len(test_case.actual_output) <= 30)
        self.reason, self.success = f"{len(test_case.actual_output)} characters", bool(self.score)
        return self.score

    @property
    def __name__(self) -> str:
        return "Short"


CASES = [
    LLMTestCase(
        name="france",
        input="Name the capital of France.",
        expected_output="It is Paris",
        actual_output="It is Paris",
        tools_called=[ToolCall(name="atlas", input_parameters={"country": "France"}, output="Paris")],
        token_cost=0.0002,
        completion_time=1.5,
    ),
    LLMTestCase(name="italy", input="Name the capital of Italy.", expected_output="Rome", actual_output="Milan"),
    LLMTestCase(name="nowhere", input="Name the capital of Nowhere.", expected_output="none", actual_output="x"),
    LLMTestCase(
        name="peru",
        input="Name the capital of Peru.",
        expected_output="Lima",
        actual_output="I think that it may well be Lima <script>alert(1)</script>",
    ),
]


def main(target: Path) -> None:
    """Evaluate the cases, and keep the file that DeepEval writes."""
    with tempfile.TemporaryDirectory() as folder:
        result = evaluate(
            CASES,
            metrics=[Overlap(), Short()],
            hyperparameters={"model": "none"},
            async_config=AsyncConfig(run_async=False),
            display_config=DisplayConfig(show_indicator=False, print_results=False, results_folder=folder),
            error_config=ErrorConfig(ignore_errors=True),
        )
        print([(each.name, each.success) for each in result.test_results])
        [written] = Path(folder).glob("**/test_run_*.json")
        (target / "deepeval.json").write_text(written.read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
