"""Gates on a whole run: a least pass rate, a least score, and no significant regression against an earlier run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.doors.pytest_plugin.reporting.numbers import Numbers
from bakeoff.doors.pytest_plugin.reporting.shape import GateResult
from bakeoff.record import reaches
from bakeoff.report.words import percent


@dataclass(frozen=True, slots=True)
class Gates:
    """What was asked for. `baseline` are the outcomes of an earlier run."""

    min_pass_rate: float | None = None
    min_score: float | None = None
    baseline: Sequence[EvalOutcome] | None = None
    prefix: str = "--eval-"

    def __bool__(self) -> bool:
        return not (self.min_pass_rate is None and self.min_score is None and self.baseline is None)


NO_GATES = Gates()


def judge_gates(gates: Gates, outcomes: Sequence[EvalOutcome], numbers: Numbers) -> tuple[GateResult, ...]:
    """What each gate says. Where no eval was run, none can be met: a typing error must not look like success."""
    if not numbers.cases:
        return tuple(GateResult(option=name, met=False, sentence="no eval was run") for name, _ in _asked(gates))
    found = []
    if gates.min_pass_rate is not None:
        found.append(_pass_rate(f"{gates.prefix}min-pass-rate", gates.min_pass_rate, numbers))
    if gates.min_score is not None:
        found.append(_min_score(f"{gates.prefix}min-score", gates.min_score, numbers))
    if gates.baseline is not None:
        from bakeoff.doors.pytest_plugin.reporting.baseline import judge_baseline

        found.append(judge_baseline(f"{gates.prefix}baseline", gates.baseline, outcomes))
    return tuple(found)


def _asked(gates: Gates) -> Iterator[tuple[str, object]]:
    for name in ("min_pass_rate", "min_score", "baseline"):
        if (value := getattr(gates, name)) is not None:
            yield gates.prefix + name.replace("_", "-"), value


def _pass_rate(option: str, wanted: float, numbers: Numbers) -> GateResult:
    if numbers.pass_rate is None:
        return GateResult(option=option, met=False, sentence="no case has a threshold, so that none passed or failed")
    sentence = (
        f"{numbers.passed:,} of {numbers.judged:,} passed ({percent(numbers.pass_rate)}), wanted {percent(wanted)}"
    )
    if numbers.undecided:
        sentence += f"; {numbers.undecided:,} could not be judged"
    return GateResult(option=option, met=numbers.pass_rate >= wanted, sentence=sentence)


def _min_score(option: str, wanted: float, numbers: Numbers) -> GateResult:
    if numbers.score is None:
        return GateResult(option=option, met=False, sentence="no case has a score")
    sentence = f"mean score {numbers.score:.3f} over {numbers.scored:,} cases, wanted {wanted:g}"
    left_out = numbers.cases - numbers.scored
    if left_out:
        sentence += f"; {left_out:,} without a score"
    return GateResult(option=option, met=reaches(numbers.score, wanted), sentence=sentence)
