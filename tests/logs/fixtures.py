"""The logs that the scripts in scripts/logs made with the real tools, and what these tools said of them."""

from dataclasses import dataclass
from pathlib import Path

from bakeoff.logs.reader import Choices, ForeignLogReader

LOGS = Path(__file__).parent / "logs"


@dataclass(frozen=True)
class Logged:
    """A log, and the numbers that its own tool computed."""

    file: str
    format: str
    tool: str
    passed: int
    failed: int
    infra: int
    grader: int = 0
    tokens: int | None = None

    shares: tuple[str, ...] = ()  # passed of scored, if there are several subjects
    scored: bool = True  # a trajectory alone says nothing of right and wrong
    scorer: str | None = None  # of several

    @property
    def shown(self) -> tuple[str, ...]:
        """Return the passed and scored numbers that tables show."""
        return self.shares or (f"{self.passed}/{self.passed + self.failed}",)

    @property
    def path(self) -> Path:
        return LOGS / self.file

    @property
    def reader(self) -> ForeignLogReader:
        return ForeignLogReader(Choices(scorers=() if self.scorer is None else (self.scorer,)))


TWO = ("2/8", "6/6")  # of echo and atlas
ALL = [
    Logged("inspect.eval", "inspect", "Inspect 0.3.285", passed=5, failed=3, infra=2, tokens=350),
    Logged("inspect.json", "inspect-json", "Inspect 0.3.285", passed=5, failed=3, infra=2, tokens=350),
    Logged(
        "promptfoo.json",
        "promptfoo",
        "promptfoo 0.121.20",
        passed=8,
        failed=6,
        infra=2,
        tokens=72,
        shares=TWO,
    ),
    Logged("promptfoo.jsonl", "promptfoo-lines", "promptfoo", passed=8, failed=6, infra=2, tokens=72, shares=TWO),
    Logged(
        "pydantic-evals.json", "pydantic-evals", "pydantic-evals", passed=4, failed=2, infra=2, scorer="EqualsExpected"
    ),
    Logged("deepeval.json", "deepeval", "DeepEval", passed=2, failed=1, infra=0, grader=1, scorer="Overlap"),
    Logged("vitest-evals/a.json", "vitest-evals", "vitest-evals", passed=2, failed=4, infra=1, grader=1, tokens=84),
    Logged(
        "lm-eval/fake-small/samples_sums_2026-11-19T20-59-25.790664.jsonl",
        "lm-eval",
        "lm-evaluation-harness 0.4.13",
        passed=6,
        failed=6,
        infra=0,
        scorer="exact_match,strict-match",
    ),
    Logged("acme__coder-1.sample-run.json", "swebench", "SWE-bench", passed=2, failed=2, infra=3),
    Logged("swebench-folder/acme__coder-1", "swebench", "SWE-bench", passed=2, failed=2, infra=2),
    Logged("harbor-job", "harbor", "Harbor", passed=3, failed=2, infra=2, grader=1, tokens=7 * 280),
    Logged("atif.json", "atif", "ATIF 1.8", passed=0, failed=0, infra=0, grader=1, tokens=280, scored=False),
]
