"""Turn the log of another tool into a plan and records."""

import hashlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Self

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.files import open_file
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._kernel.text import count_of, visible
from bakeoff.engine.run_journal import RunJournal
from bakeoff.errors import RunFolderError, UsageError
from bakeoff.logs.trials import (
    RECORDED,
    ForeignLog,
    LoggedTrial,
    child_folders,
    file_in,
    first_bytes,
    name_of,
    outer_keys,
    score_of,
    text_of,
)
from bakeoff.options import RunOptions
from bakeoff.plan import IMPORTED, Case, Plan, ScorerSpec, SubjectSpec, Trial
from bakeoff.record import LABEL, NO_USAGE, Phase, Record, Score
from bakeoff.report.readers import Circumstances, Description, Source
from bakeoff.storage.redaction import Redactor, known_secrets
from bakeoff.storage.run_folder import RunFolder, new_run_folder
from bakeoff.verdict import Verdict

FORMATS = {
    "inspect": ("Inspect logs, .eval", "inspect_logs:read_archive"),
    "inspect-json": ("Inspect logs, .json", "inspect_logs:read_json_log"),
    "harbor": ("Harbor job and trial folders", "harbor:read_job"),
    "atif": ("ATIF trajectories, .json", "harbor:read_trajectory"),
    "promptfoo": ("promptfoo output, .json", "promptfoo:read_output"),
    "promptfoo-lines": ("promptfoo output, .jsonl", "promptfoo:read_lines"),
    "deepeval": ("DeepEval test runs, .json", "eval_reports:read_test_run"),
    "pydantic-evals": ("pydantic-evals reports, .json", "eval_reports:read_report"),
    "vitest-evals": ("vitest-evals reports, .json", "vitest_evals:read_report"),
    "lm-eval": ("samples of lm-evaluation-harness, .jsonl", "lm_eval:read_samples"),
    "swebench": ("SWE-bench reports, .json, or a folder of them", "swebench:read_report"),
}
"""The log formats by name, each with a description and the function that reads it, which is imported when needed."""


def known_formats() -> str:
    """Return the list of formats for messages."""
    return ", ".join(f"{name} ({what})" for name, (what, _) in FORMATS.items())


def detect(path: Path) -> str | None:
    """Return the name of the format of a file or folder by its content, or None if it is not known."""
    if path.is_dir():
        from bakeoff.logs.harbor import trial_folders

        if trial_folders(path):
            return "harbor"
        reports = (file_in(each, "report.json") for each in child_folders(path))
        return "swebench" if any(report and detect(report) == "swebench" for report in reports) else None
    if not path.is_file():
        return None
    head = first_bytes(path)
    if head.startswith(b"PK\x03\x04"):
        return "inspect" if any(word in head for word in (b"_journal/", b"header.json", b"samples/")) else None
    return _format_of(head) or _format_of(first_bytes(path, _MAX_HEAD))


def _format_of(head: bytes) -> str | None:
    keys, first = outer_keys(head)
    return next((name for name, is_it in _BY_KEYS.items() if is_it(keys, first, head)), None)


def logs_in(path: Path) -> list[Path]:
    """Return the logs in a folder, if it is not a log itself, as a whole."""
    if not path.is_dir() or (path / "plan.json").is_file() or detect(path):
        return []
    return [each for each in sorted(path.iterdir()) if not each.is_symlink() and detect(each)]


_Test = Callable[[set[str], set[str], bytes], bool]
# Given the outer keys as far as the first bytes have them, those of the first object inside, and these bytes.
_BY_KEYS: dict[str, _Test] = {
    "atif": lambda keys, _, head: "schema_version" in keys and b'"ATIF-v' in head,
    "inspect-json": lambda keys, _, __: "eval" in keys and bool(keys & {"version", "status"}),
    "promptfoo": lambda keys, _, __: (
        {"evalId", "results"} <= keys or ({"results", "config"} <= keys and "group_subtasks" not in keys)
    ),
    "promptfoo-lines": lambda keys, _, __: {"promptIdx", "testIdx", "success"} <= keys,
    "deepeval": lambda keys, _, head: bool(keys & {"testCases", "testRunData"}) and b'"metricsData"' in head,
    "pydantic-evals": lambda keys, _, head: {"name", "cases"} <= keys and b'"evaluator_failures"' in head,
    "vitest-evals": lambda keys, _, head: {"numTotalTests", "testResults"} <= keys and b'"eval"' in head,
    "lm-eval": lambda keys, _, __: {"doc_id", "doc", "filtered_resps"} <= keys,
    "swebench": lambda keys, inner, _: "resolved_ids" in keys or {"patch_is_None", "resolved"} <= inner,
}


_MAX_HEAD = 1 << 24  # of a file that is read to find its format, whose first case may be long
_PASS_OR_FAIL = {0.0, 0.5, 1.0}  # 0.5 is partial credit
_MAX_VALUE_LENGTH = 60  # characters of a value that is not a number
_HUGE = 1e300  # whole numbers may be too large for a float


class LogSource(FrozenModel):
    """The origin of an imported run."""

    tool: str
    version: str | None = None
    format: str
    file: str
    sha256: str | None = None  # None for a folder

    @property
    def words(self) -> str:
        """Name the tool, with its version if the log has it."""
        return f"{self.tool} {self.version}" if self.version else self.tool


def plan_source(plan: Plan) -> LogSource:
    """Return the source from which the run of a plan was imported."""
    try:
        return LogSource.model_validate(plan.settings.get(IMPORTED))
    except ValidationError:  # a plan may come from anywhere
        return LogSource(tool="another tool", format="unknown", file="unknown")


class ScoreScale(FrozenModel):
    """The worst and the best value of a scorer, which count as 0 and 1."""

    scorer: str = ""  # empty: every scorer that counts
    worst: float
    best: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `1:10`, or `NAME=1:10` for one scorer. Raise UsageError otherwise."""
        name, _, ends = text.rpartition("=")
        with suppress(ValueError):
            worst, best = map(float, ends.split(":"))
            if isfinite(best - worst) and best != worst:
                return cls(scorer=name, worst=worst, best=best)
        raise UsageError(f"--scale {text!r} is not LOW:HIGH or NAME=LOW:HIGH, such as 1:10 or rating=1:10")

    def __str__(self) -> str:
        return f"{self.worst:g}:{self.best:g}"


class Choices(FrozenModel):
    """The user's choices about a log."""

    format: str | None = None  # None: by its content
    scorers: tuple[str, ...] = ()  # those that count; none means those of the format
    scales: tuple[ScoreScale, ...] = ()
    threshold: float | None = None  # None: 1 where all scores are pass or fail, else scores are only recorded

    def scale_of(self, scorer: str) -> ScoreScale | None:
        """Return the scale of a scorer: its own, or that of all scorers."""
        named = sorted(self.scales, key=lambda scale: not scale.scorer)
        return next((scale for scale in named if scale.scorer in (scorer, "")), None)

    def counted(self, trial: LoggedTrial) -> tuple[Score, ...]:
        """Return the scores that count, then the others without values, which are shown but not in any mean."""
        if self.scorers:
            given = (*trial.scores, *trial.asides)
            return tuple(self._scaled(score) for score in given if score.name in self.scorers)
        return (*map(self._scaled, trial.scores), *map(_beside, trial.asides))

    def _scaled(self, score: Score) -> Score:
        """Return a score from 0 to 1. Raise UsageError if its value is a number outside the scale."""
        scale, given = self.scale_of(score.name), score.metadata.get("value") if score.value is None else score.value
        if isinstance(given, bool) or not isinstance(given, int | float):
            return _explained(score)
        ends = scale or ScoreScale(worst=0, best=1)
        value = (given - ends.worst) / (ends.best - ends.worst) if abs(given) < _HUGE else -1
        if not 0 <= value <= 1:
            told = f"{given:.12g}" if abs(given) < _HUGE else "a huge number"
            way_out = "give its worst and best value with --scale LOW:HIGH, or choose other scorers with --scorer"
            if scale is not None:
                way_out = "widen the scale, or give it to one scorer: --scale NAME=LOW:HIGH"
            name = visible(score.name)
            raise UsageError(
                f"scorer {name!r} has the value {told}, which is not from {ends.worst:g} to {ends.best:g}: {way_out}"
            )
        if scale is None:
            return score
        name, metadata = self.shown_name(score.name), {**score.metadata, "value": given}
        return score.model_copy(update={"name": name, "value": value, "metadata": metadata})

    def shown_name(self, scorer: str) -> str:
        """Return the name of a scorer in reports. Scores on another scale are not comparable: it is in the name."""
        scale = self.scale_of(scorer)
        return scorer if scale is None else name_of(f"{scorer} ({scale})")


@dataclass(frozen=True)
class LogFile:
    """A log, which is read first for its plan and then for its records."""

    path: Path
    choices: Choices

    @cached_property
    def log(self) -> ForeignLog:
        """Return the log, read by its format. Raise UsageError if the format is not known."""
        name = self.choices.format or detect(self.path)
        if inside := logs_in(self.path):
            raise UsageError(f"{self.path} holds {count_of(len(inside), 'log')}: name one, such as {inside[0].name}")
        if name is None:
            state = "is not a log of a known format" if self.path.exists() else "does not exist"
            raise UsageError(f"{self.path} {state}: {known_formats()}")
        read: Callable[[Path], ForeignLog] = resolve_name(f"bakeoff.logs.{FORMATS[name][1]}")
        return read(self.path)

    @cached_property
    def _redactor(self) -> Redactor:
        return Redactor(known_secrets())

    def trials(self) -> Iterator[LoggedTrial]:
        """Yield the trials without secrets, each with its round and the scores that count."""
        rounds: dict[tuple[str, str], int] = {}
        names = _CaseNames()
        for given in self._whole_cases() if self.log.reduced else self.log.trials():
            trial = given
            if self._redactor and self._redactor.finds(given.model_dump_json().encode()):
                trial = self._redactor.model(given)
            case, round_ = trial.case, trial.round
            if round_ is None:
                case = names.different(case)
                round_ = rounds.get((case.id, trial.subject.name), 0)
                rounds[case.id, trial.subject.name] = round_ + 1
            try:
                scores = self.choices.counted(trial)
            except UsageError as error:
                raise UsageError(f"{self.path}: {error}") from error
            if scores or trial.failure is not None or not (trial.scores or trial.asides):
                yield trial.model_copy(update={"case": case, "round": round_, "scores": scores, "asides": ()})

    def _whole_cases(self) -> Iterator[LoggedTrial]:
        """Yield the trials; for a scorer that reduces the rounds of a case to one value, one trial for each case."""
        values = self.log.reduced.get(self.scorers[0]) if len(self.scorers) == 1 else None
        if values is None:
            yield from self.log.trials()
            return
        cases: dict[str, LoggedTrial] = {}
        for trial in self.log.trials():
            cases[trial.case.id] = trial.added_to(cases.get(trial.case.id))
        for name, trial in cases.items():
            known = {"scores": (score_of(self.scorers[0], values[name]),), "failure": None} if name in values else {}
            yield trial.model_copy(update={"round": 0, "asides": (), "scores": (), **known})

    @cached_property
    def scorers(self) -> tuple[str, ...]:
        """Return the names of the scorers that count."""
        names = {score.name: None for trial in self.log.trials() for score in trial.scores}
        return self.choices.scorers or (*names, *self.log.reduced)

    @property
    def plan(self) -> Plan:
        """Return the plan that the log implies: its cases, subjects and scorers."""
        return self._survey[0]

    @property
    def span(self) -> tuple[float, float] | None:
        """Return when the first trial started and the last one ended, or None if the log does not say."""
        return self._survey[1]

    @cached_property
    def _survey(self) -> tuple[Plan, tuple[float, float] | None]:
        """Read all trials once, and keep only the parts that a plan needs."""
        cases: dict[str, Case] = {}
        subjects: dict[str, SubjectSpec] = {}
        scorers: dict[str, None] = {}
        values: set[float] = set()
        rounds = 1 if set(self.log.reduced).intersection(self.scorers) else self.log.rounds
        created = self.log.created
        times = [] if created is None else [created]
        for trial in self.trials():
            if trial.started is not None:
                ended = trial.started + sum(filter(None, (trial.attempt_seconds, trial.score_seconds)))
                times = [min(*times, trial.started, ended), max(*times, trial.started, ended)]
            cases.setdefault(trial.case.id, trial.case)
            subjects.setdefault(trial.subject.name, trial.subject)
            scorers |= dict.fromkeys(score.name for score in trial.scores)
            if len(values) <= len(_PASS_OR_FAIL):
                values |= {score.value for score in trial.scores if score.value is not None}
            rounds = max(rounds, (trial.round or 0) + 1)
        for name in self.choices.scorers:
            if self.choices.shown_name(name) not in scorers:
                known = {each.name: None for trial in self.log.trials() for each in (*trial.scores, *trial.asides)}
                known |= dict.fromkeys(self.log.reduced)
                raise UsageError(f"--scorer {name!r}: {self.path} has only {visible(', '.join(known), 300)}")
        if not cases:
            raise RunFolderError(f"{self.path} holds no trial: {self.log.tool} logged none")
        unrun = (Case(id=each, prompt="") for each in self.log.planned if each not in cases)
        digest = None
        if self.path.is_file():
            with open_file(self.path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type] # it has readinto
        known = {name: getattr(self.log, name) for name in ("tool", "version", "format")}
        source = LogSource(**known, file=name_of(self.path.name), sha256=digest)
        usual = 1.0 if values <= _PASS_OR_FAIL and not self.choices.scales else None
        usual = usual if self.log.threshold is None else self.log.threshold
        plan = Plan(
            name=name_of(" · ".join([self.log.name, *self.choices.scorers])),
            cases=(*cases.values(), *{each.id: each for each in unrun}.values()),
            subjects=tuple(subjects.values()),
            scorers=tuple(ScorerSpec(kind=RECORDED, name=name) for name in scorers) or (ScorerSpec(kind=RECORDED),),
            rounds=rounds,
            threshold=usual if self.choices.threshold is None else self.choices.threshold,
            door=IMPORTED,
            settings={IMPORTED: source.model_dump(exclude_none=True)},
            sparse=self.log.sparse,
        )
        return plan, (times[0], times[-1]) if times else None

    def records(self) -> Iterator[Record]:
        """Yield the record of each trial."""
        plan = self.plan
        for logged in self.trials():
            trial = plan.find(logged.case.id, logged.subject.name, logged.round or 0)
            if trial is None:  # the log changed between two readings
                raise RunFolderError(f"{self.path} was changed while it was read: read it again")
            yield _record(trial, logged, plan.threshold, self.log.created)


class _CaseNames:
    """Unique names for different cases of the same name. Equal cases are rounds of one case."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}  # name by digest
        self._numbers: dict[str, int] = {}  # of the last case with that name

    def different(self, case: Case) -> Case:
        digest = fingerprint(case.attempt_digest, case.score_digest)
        if digest not in self._given:
            free = case.id
            while free in self._numbers:
                self._numbers[case.id] += 1
                free = f"{case.id} ({self._numbers[case.id]})"
            self._numbers[free], self._given[digest] = 1, free
        # A copy would keep the digests of the old name.
        return Case(**{**{name: getattr(case, name) for name in Case.model_fields}, "id": self._given[digest]})


def _explained(score: Score) -> Score:
    """If the value of a score could not be used, add the cause to its reason."""
    if score.value is not None or score.failure is not None:
        return score
    because = _why_unscored(score.metadata.get("value"))
    return score.model_copy(update={"reason": f"{because}: {score.reason}" if score.reason else because})


def _why_unscored(value: JsonValue) -> str:
    if value is None:
        return "the log has no value"
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{visible(text, _MAX_VALUE_LENGTH) or 'an empty text'} is no number"


def _beside(score: Score) -> Score:
    value = score.metadata.get("value") if score.value is None else score.value
    told = {"value": None, "metadata": {**score.metadata, "value": value, LABEL: text_of(value)}}
    return score.model_copy(update={**told, "reason": score.reason or text_of(value)})


def _record(trial: Trial, logged: LoggedTrial, threshold: float | None, created: float | None) -> Record:
    seconds = logged.attempt_seconds
    began = logged.started if logged.started is not None else created
    attempt = None
    if seconds is not None or logged.failure is not None:
        waited = min(logged.waited, seconds or 0.0)
        attempt = Phase(seconds=seconds or 0.0, waited=waited, failure=logged.failure)
    used = logged.transcript.usage if logged.transcript else None
    more: dict[str, Any] = {} if used is None else {"spent": used + logged.judging, "judging": logged.judging}
    return Record(
        **trial.identity,
        started=began or 0.0,
        threshold=threshold,
        prepare=None if logged.prepare_seconds is None else Phase(seconds=logged.prepare_seconds),
        attempt=attempt,
        score=None if logged.score_seconds is None else Phase(seconds=logged.score_seconds),
        **{name: getattr(logged, name) for name in ("tries", "transcript", "artefacts", "scores")},
        **more,
    )


class ForeignLogReader:
    """The reader of other tools' logs, so that commands accept them like our own result files."""

    @property
    def what(self) -> str:
        """Return a phrase that lists the formats, for messages."""
        return f"a log of another tool ({known_formats()})"

    def __init__(self, choices: Choices | None = None) -> None:
        self.choices = choices or Choices()
        self._last: LogFile | None = None  # one path is described, then read

    def recognises(self, path: Path) -> bool:
        """Tell whether the path can be read and has a known format."""
        with suppress(RunFolderError):
            return detect(path) is not None or bool(logs_in(path))
        return False

    def apart(self, path: Path) -> "list[tuple[Path, ForeignLogReader]]":
        """Return each log at a path, with a reader for each scorer: no tool reports the mean of several."""
        if inside := logs_in(path):
            return [found for each in inside for found in ForeignLogReader(self.choices).apart(each)]
        names = self.open(path).scorers
        if len(names) < 2:
            return [(path, self)]
        return [(path, ForeignLogReader(self.choices.model_copy(update={"scorers": (name,)}))) for name in names]

    def describe(self, path: Path) -> Description:
        file = self.open(path)
        if (several := file.scorers)[1:]:
            names = visible(", ".join(several), 300)
            raise UsageError(f"{path} has {len(several)} scorers ({names}): `bakeoff import` makes a run of each")
        return Description(name=path.name, plan=file.plan, content_known=file.log.content_known)

    def circumstances(self, path: Path) -> Circumstances:  # noqa: ARG002 - versions are those of bakeoff
        return Circumstances()

    def read(self, path: Path) -> Iterator[Record]:
        return self.open(path).records()

    def open(self, path: Path) -> LogFile:
        """Return the log at a path. Keep the last one, as a path is described and then read."""
        if self._last is None or self._last.path != path:
            self._last = LogFile(path, self.choices)
        return self._last


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """The run that was made from a log, and the number of its trials with each verdict."""

    folder: RunFolder
    plan: Plan
    verdicts: Counter[Verdict]


def import_log(path: Path, results: Path, choices: Choices) -> ImportedRun:
    """Write the plan and records of a log to a new run folder. Leave nothing if it is unreadable."""
    reader = ForeignLogReader(choices)
    source = Source(path, reader)
    plan = source.plan
    began, ended = reader.open(path).span or (time.time(), time.time())
    folder = new_run_folder(results, plan.name)
    facts = plan.settings[IMPORTED]
    total, verdicts = NO_USAGE, Counter[Verdict]()
    try:
        with RunJournal(folder, RunOptions().redactor()) as journal:
            journal.start(plan, made_here=False, time=began, imported=facts, imported_at=time.time())
            for record in source.records():
                journal.append(record)
                total += record.spent
                verdicts[record.verdict] += 1
            journal.add_usage("", total, total)
            journal.end("imported", time=ended)
    except BaseException:
        shutil.rmtree(folder.path, ignore_errors=True)  # it may have no plan yet, so it is not a run to `delete`
        raise
    return ImportedRun(folder, plan, verdicts)
