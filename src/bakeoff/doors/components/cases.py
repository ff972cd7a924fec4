"""From a suite to the case that a plan holds, and from the case back to how it is graded."""

import json
import re
from dataclasses import dataclass

from bakeoff.doors.components.suites import RunnerName, Suite
from bakeoff.errors import GraderError
from bakeoff.plan import Case, Files, Limits

_LIMITS = Limits(attempt_seconds=900.0, score_seconds=900.0)
"""Of a trial. Scoring waits for a free worker, and perhaps for the reference; a run of tests has its own limit."""

_FENCES = {"vitest": "ts", "pytest": "python"}


@dataclass(frozen=True, slots=True)
class Grading:
    """How answers to one case are graded; all of it is hidden from subjects."""

    suite: str
    runner: RunnerName
    component: str
    test_file: str
    files: Files  # of the tests: everything that lies beside the component
    reference: str
    seconds: float
    validator_file: str | None = None
    validator: str | None = None
    command: tuple[str, ...] = ()
    report: str = "report.xml"
    canary: str | None = None

    @property
    def has_canary(self) -> bool:
        """Whether a test that must fail is among the tests; a command of a suite's own may bring none."""
        return self.runner != "junit" or self.canary is not None

    def with_component(self, content: str) -> dict[str, str]:
        """The folder that tests run in."""
        return {**self.files, self.component: content}


def build_prompt(suite: Suite, *, hide_tests: bool) -> str:
    """What the model is asked: the prompt, the tests unless they are hidden, and how to hand in."""
    parts = [suite.prompt.strip()]
    if not hide_tests:
        language = _FENCES.get(suite.layout.runner) or suite.language
        parts.append(f"## Test Suite\n\n{fenced(suite.test_content, language)}")
    parts.append(
        f"When you have finished, call the `ResultWrite` tool once with the complete content of "
        f"`{suite.component_file}` as `content`. Only what you give to `ResultWrite` counts."
    )
    return "\n\n".join(parts) + "\n"


def fenced(text: str, language: str) -> str:
    """Text in a fence that nothing inside can close."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def case_of(suite: Suite, *, hide_tests: bool) -> Case:
    layout = suite.layout
    tags = {
        "runner": layout.runner,
        "language": suite.language,
        "test": suite.test_file,
        "seconds": f"{layout.seconds:g}",
        "validator": suite.validator_file or "",
        "command": json.dumps(layout.command) if layout.command else "",
        "report": layout.report if layout.command else "",
        "canary": layout.canary or "",
    }
    return Case(
        id=suite.name,
        prompt=build_prompt(suite, hide_tests=hide_tests),
        collect=(layout.component,),
        hidden=suite.hidden,
        reference={layout.component: suite.reference},
        tags={key: value for key, value in tags.items() if value},
        limits=_LIMITS,
    )


def grading_of(case: Case) -> Grading:
    """How a case of this door is graded."""
    tags = case.tags
    try:
        ((component, reference),) = case.reference.items()
        validator_file = tags.get("validator")
        return Grading(
            suite=case.id,
            runner=_runner(tags["runner"]),
            component=component,
            test_file=tags["test"],
            files={name: text for name, text in case.hidden.items() if name != validator_file},
            reference=reference,
            seconds=float(tags["seconds"]),
            validator_file=validator_file,
            validator=case.hidden[validator_file] if validator_file else None,
            command=tuple(json.loads(tags.get("command", "[]"))),
            report=tags.get("report", "report.xml"),
            canary=tags.get("canary"),
        )
    except (KeyError, ValueError) as error:
        raise GraderError(f"case {case.id!r} was not made from a suite: {error}; start a new run") from error


def _runner(name: str) -> RunnerName:
    known: dict[str, RunnerName] = {"vitest": "vitest", "pytest": "pytest", "junit": "junit"}
    return known[name]
