"""Carry out `bakeoff runs show --case`: print one trial of a run, without reading the others."""

from rich.text import Text

from bakeoff._kernel.text import shorten
from bakeoff.cli.console import out, print_json
from bakeoff.errors import UsageError
from bakeoff.plan import Plan, Trial
from bakeoff.record import Record
from bakeoff.report.formatting import as_text, cost, visible
from bakeoff.storage.run_folder import RunFolder

_LONGEST = 20_000  # characters of an answer; --json prints all


def show_trial(folder: RunFolder, case: str, subject: str | None, round_: int, *, as_json: bool) -> None:
    """Print the record of a trial. Raise UsageError if the plan has no such trial, or it is not finished."""
    plan = folder.read_plan()
    trial = _find_trial(plan, case, subject, round_)
    record = folder.latest_record(trial)
    if record is None:
        raise UsageError(
            f"run {folder.label} has no result of {_name(trial)}: `bakeoff resume {folder.label}` runs what is left"
        )
    if as_json:
        print_json({"verdict": record.verdict, **record.model_dump(mode="json", exclude_defaults=True)})
        return
    out().print(Text(f"{folder.label}, {_name(trial)}: {record.verdict}"))
    for line in _lines(record):
        out().print(Text(f"  {line}"))
    if record.transcript is not None:
        for line in shorten(as_text(record.transcript.output) or "", _LONGEST).split("\n"):
            out().print(Text(visible(line, _LONGEST)))


def _name(trial: Trial) -> str:
    return f"round {trial.round + 1} of {visible(trial.subject.name, 100)!r} on {visible(trial.case.id, 100)!r}"


def _find_trial(plan: Plan, case: str, subject: str | None, round_: int) -> Trial:
    names = [spec.name for spec in plan.subjects]
    if subject is None and len(names) > 1:
        shown = ", ".join(visible(name, 60) for name in names[:10])
        raise UsageError(f"--case {visible(case, 60)} needs --subject: the run has {len(names)} of them ({shown})")
    trial = plan.find(case, names[0] if subject is None else subject, round_ - 1)
    if trial is not None:
        return trial
    if not 1 <= round_ <= plan.rounds:
        raise UsageError(f"--round {round_} is not between 1 and {plan.rounds}, the rounds of the run")
    if subject is not None and subject not in names:
        raise UsageError(f"--subject {visible(subject, 60)} is not in the run: `bakeoff runs show` lists its subjects")
    raise UsageError(f"--case {visible(case, 60)} is not in the run, which has {len(plan.cases):,} cases")


def _lines(record: Record) -> list[str]:
    lines = [
        f"{score.name}: {'unscored' if score.value is None else f'{score.value:g}'}"
        + (f" ({score.reason})" if score.reason else "")
        for score in record.scores
    ]
    if record.failure is not None:
        lines.append(f"{record.failure.type}: {record.failure.message}")
    if record.attempt is not None:
        lines.append(f"{record.attempt.seconds:.2f} s, {cost(record.spent.cost)}, tries: {record.tries}")
    return [visible(line, 500) for line in lines]
