# mypy: ignore-errors
"""Make the report of pydantic-evals in tests/logs/logs. Made with pydantic-evals 2.62.0; needs no network.

python scripts/logs/pydantic_evals_report.py tests/logs/logs
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected, EvaluationReason, Evaluator, EvaluatorContext
from pydantic_evals.reporting import EvaluationReportAdapter


@dataclass
class Brief(Evaluator[str, str, Any]):
    """A number, beside the assertions."""

    def evaluate(self, ctx: EvaluatorContext[str, str, Any]) -> dict[str, Any]:
        return {
            "brevity": EvaluationReason(1 / (1 + len(ctx.output)), "shorter is better"),
            "tone": "rude" if "!" in ctx.output else "plain",
        }


@dataclass
class Fragile(Evaluator[str, str, Any]):
    """Break on one case."""

    def evaluate(self, ctx: EvaluatorContext[str, str, Any]) -> bool:
        if ctx.inputs == "capital of Peru":
            raise TimeoutError("the judge did not answer")
        return True


async def capital(question: str) -> str:
    """Answer without any model."""
    if question == "capital of Nowhere":
        raise ConnectionError("503 Service Unavailable")
    answers = {"France": "Paris", "Italy": "Milan!", "Peru": "Lima"}
    return answers[question.removeprefix("capital of ")]


def main(target: Path) -> None:
    """Evaluate four cases twice each, and write the report as its own adapter does."""
    cases = [
        Case(name=country, inputs=f"capital of {country}", expected_output=expected, metadata={"continent": continent})
        for country, expected, continent in (
            ("France", "Paris", "Europe"),
            ("Italy", "Rome", "Europe"),
            ("Nowhere", "none", "none"),
            ("Peru", "Lima", "South America"),
        )
    ]
    dataset = Dataset(name="capitals", cases=cases, evaluators=[EqualsExpected(), Brief(), Fragile()])
    report = dataset.evaluate_sync(capital, progress=False, repeat=2)
    report.print()
    text = EvaluationReportAdapter.dump_json(report, indent=1).decode()
    (target / "pydantic-evals.json").write_text(re.sub(r'(?:/[^/\s"\\]+)+/(?=[^/\s"\\]+\.py)', "", text) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
