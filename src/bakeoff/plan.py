"""The plan of a run: cases × subjects × rounds as frozen data.

A `Plan` names its subjects and scorers by `SubjectSpec` and `ScorerSpec`, which
`bakeoff.engine.registry` builds. The plan is kept in the run folder, so that a run can be resumed
without the original files.

Trials are made one at a time. Each has two keys. The attempt key covers everything that a subject
can notice; the score key adds everything that only graders can notice. Resuming compares keys, so
an edited case counts as a new one, and an edited scorer needs no new attempt.
"""

import hashlib
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, Field, PositiveFloat, PositiveInt, ValidationError

from bakeoff._kernel.files import pattern_problem
from bakeoff._kernel.json import CleanJson, CleanObject, CleanText
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._kernel.text import count_of, in_our_words
from bakeoff.errors import UsageError

CLUSTER_TAG = "cluster"
"""The case tag that names the cluster of a case: cases of one cluster are not independent of each other."""

PROMPT_TAG = "prompt"
"""The case tag that names the prompt of a case that is tried with several prompts; see `Case.name`."""

Options = TypeVar("Options", bound=BaseModel)


def _printable(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError(f"{text!r} is not a name: use printable characters, at least one of them not a space")
    return text


def _inside(path: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or not pure.parts or ".." in pure.parts or not path.isprintable():
        raise ValueError(f"{path!r} does not stay inside the workspace: use a relative path without '..'")
    return path


def _takeable(pattern: str) -> str:
    if why := pattern_problem(_inside(pattern)):
        raise ValueError(
            f"{pattern!r} {why}: files with such names are not collected from a workspace; use a plain name"
        )
    return pattern


HIDDEN = "hidden"
"""The key in a plan's settings for folders that no subject may see, such as those of known-good answers."""

ORIGIN = "origin"
"""The key in a plan's settings for the `Origin` of its cases."""

Name = Annotated[str, AfterValidator(_printable)]
RelativePath = Annotated[str, AfterValidator(_inside)]
TakenPath = Annotated[str, AfterValidator(_takeable)]
"""A path or glob of files to collect from a workspace."""
Files = dict[RelativePath, CleanText]


class Limits(FrozenModel):
    """The limits of one trial. All seconds are wall-clock time."""

    @cached_property
    def attempt_digest(self) -> str:
        """Return a digest of all limits except that of scoring, which subjects do not notice."""
        return fingerprint(self.model_dump(exclude={"score_seconds"}, exclude_defaults=True))

    prepare_seconds: PositiveFloat = 60.0
    attempt_seconds: PositiveFloat = 300.0
    score_seconds: PositiveFloat = 120.0
    memory_mb: PositiveInt = 4096
    processes: PositiveInt = Field(default=256, description="processes and threads alive at one time")
    disk_mb: PositiveInt = Field(default=1024, description="workspace, HOME and TMPDIR together")
    output_kb: PositiveInt = Field(default=1024, description="kept of each of stdout and stderr; more ends the command")


Framework = Literal["svelte", "react", "vue", "typescript"]
"""The framework of a component. `typescript` stands for plain TypeScript."""


class Grading(FrozenModel):
    """How to run the hidden tests of a case on an answer; see `bakeoff.grading`."""

    runner: Literal["vitest", "jest", "pytest", "junit", "command"]
    solution: tuple[RelativePath, ...] = Field(min_length=1, description="the files that an answer consists of")
    tests: tuple[RelativePath, ...] = Field(min_length=1, description="test files, and helpers that only tests use")
    seconds: PositiveFloat = Field(description="limit of one run of the tests")
    track: str = Field(default="", description="for exercises: the language track, which knows the rules of its tests")
    command: tuple[str, ...] = Field(default=(), description="arguments for `junit`; one shell line for `command`")
    framework: Framework | None = Field(
        default=None, description="for `vitest`: what components are written with; by default their ending decides"
    )
    browser: bool = Field(default=False, description="for `vitest`: run the tests in Chromium instead of jsdom")
    report: str = Field(default="report.xml", description="for `junit`: the file that the command writes")
    canary: str | None = Field(default=None, description="for `junit`: a test of the suite that must fail")
    validator: RelativePath | None = Field(default=None, description="the hidden file with the suite's validator")
    run_skipped: bool = Field(default=True, description="also run the tests that a track marks as skipped")
    processes: bool = Field(default=False, description="for `pytest`: tests and answers may start processes")
    type_check: bool = Field(default=False, description="type errors fail an answer; for TypeScript exercises")
    shown_tests: Files = Field(
        default={}, description="test files as the subject sees them, where a share of the tests is hidden from it"
    )


class Origin(FrozenModel):
    """The source of the cases of a plan, and the cases that were left out."""

    checkout: CleanText | None = Field(default=None, description="the name of the folder, or `bundled`")
    commit: CleanText | None = Field(default=None, description="of the checkout; the version, for bundled cases")
    track: CleanText | None = Field(default=None, description="of exercises; several are joined by commas")
    language: CleanText | None = None
    left_out: tuple[CleanText, ...] = Field(default=(), description="a sentence for each case that could not be used")

    @property
    def label(self) -> str:
        """Return the checkout and its commit in a few words, such as `bundled at 1.0`."""
        commit = self.commit[:10] if self.commit and " " not in self.commit else self.commit
        return " at ".join(filter(None, (self.checkout, commit)))

    def is_comparable(self, other: "Origin") -> bool:
        """Return True if no known track or commit differs, so that equal names mean equal cases."""
        pairs = ((self.track, other.track), (self.commit, other.commit))
        return all(one is None or another is None or one == another for one, another in pairs)


Gate = Literal["mean", "pass@k", "pass^k"]
"""The rule that makes one score of all rounds of a case: their mean, 1 if any round passes, or 1 if all do."""


class PassRule(FrozenModel):
    """The rule that decides when a case passes, given all its rounds for one subject.

    With the gate `each`, every trial is judged alone, by the threshold of this rule. With `share`,
    every round passes or fails alone, and the given share of rounds must pass. Any other gate makes
    one score of all rounds, which must reach the threshold.
    """

    threshold: float | None = Field(default=1.0, ge=0, le=1, description="None records without passing or failing")
    gate: Gate | Literal["share", "each"] = "mean"
    share: float = Field(default=1.0, ge=0, le=1, description="rounds that must pass, under the gate `share`")
    null_as_zero: bool = Field(default=False, description="a scorer that returns no number counts as 0")


class ScorerSpec(FrozenModel):
    """A scorer as data. `name` tells scorers of the same kind apart; it defaults to the kind."""

    kind: Name
    name: Name | None = None
    options: CleanObject = {}
    revision: str = ""
    transform: tuple[CleanText | dict[CleanText, CleanText], ...] = Field(
        default=(), description="changes the answer for this scorer, step by step: JMESPath, Jinja, or code by language"
    )
    threshold: float | None = Field(default=None, description="a score of at least this counts as 1, a lower one as 0")
    negated: bool = Field(default=False, description="1 minus the score counts")
    weight: float = Field(default=1.0, ge=0, description="in the mean of all scores; one with 0 is only shown")

    @property
    def has_rules(self) -> bool:
        """Return True if the spec changes the answer before it is scored, or the score after that."""
        return bool(self.transform) or self.negated or self.threshold is not None or self.weight != 1

    @property
    def code(self) -> tuple[str, ...]:
        """Return the code that a scorer runs: its own and that of its transform."""
        steps = [text for step in self.transform if isinstance(step, dict) for text in step.values()]
        return (*([str(self.options["code"])] if "code" in self.options else []), *steps)

    @cached_property
    def digest(self) -> str:
        """Return the digest of the scorer in score keys. Default values of options are left out."""
        return fingerprint(self.model_dump(exclude_defaults=True))


class Case(FrozenModel):
    """One prompt with its files and its expected result. The subject sees `prompt` and `files` only."""

    id: Name
    prompt: CleanText
    files: Files = {}
    collect: tuple[TakenPath, ...] = Field(default=(), description="patterns of the files that are the answer")
    answer_file: TakenPath | None = Field(
        default=None, description="the file for an answer in text: its first code block, or all of it"
    )
    hidden: Files = Field(default={}, description="tests and other files that only graders see")
    reference: Files = Field(default={}, description="the known-good answer, as files")
    expected: CleanJson = Field(default=None, description="the known-good answer, as output")
    grading: Grading | None = Field(default=None, description="None where the case has no tests of its own to run")
    picture: Files = Field(
        default={}, description="the module whose default export a component gets for its picture; part of no key"
    )
    tags: dict[CleanText, CleanText] = {}
    variables: CleanObject = Field(
        default={}, description="values that scorers can read by name, such as those that a template was filled with"
    )
    scorers: tuple[ScorerSpec, ...] | None = Field(
        default=None, description="score this case instead of the plan's; None: those of the plan"
    )
    limits: Limits = Limits()
    pass_rule: PassRule | None = Field(
        default=None, description="None: every round must reach the plan's threshold; part of no key"
    )

    @cached_property
    def attempt_digest(self) -> str:
        """Return a digest of the fields that a subject can notice. Default values are left out."""
        return self.attempt_digest_within(self.limits)

    def attempt_digest_within(self, limits: Limits) -> str:
        """Return the attempt digest under other limits, such as those of the command line."""
        return fingerprint(self._differing(_NOTICED), limits.attempt_digest)

    @cached_property
    def score_digest(self) -> str:
        """Return a digest of the fields that only graders notice. If it changes, score again."""
        return self.score_digest_within(self.limits)

    def score_digest_within(self, limits: Limits) -> str:
        """Return the score digest under other limits."""
        own = [] if self.scorers is None else [[scorer.digest for scorer in self.scorers]]
        return fingerprint(self._differing(_GRADED), limits.score_seconds, *own)

    def _differing(self, names: set[str]) -> dict[str, Any]:
        """Return the named fields that differ from their defaults, faster than `model_dump`."""
        if self.grading is not None:
            return self.model_dump(include=names, exclude_defaults=True)
        fields, own = type(self).model_fields, self.__dict__
        return {name: own[name] for name in names if own[name] != fields[name].default}

    @property
    def name(self) -> str:
        """Return the id without ` · ` and the name of the prompt, which ends the ids of a case with several prompts."""
        return self.id.removesuffix(f" · {self.tags[PROMPT_TAG]}") if PROMPT_TAG in self.tags else self.id

    @property
    def expected_answer(self) -> Any:
        """Return the expected answer for scorers: the variable `expected`, or else the expected output."""
        return self.variables.get("expected", self.expected)

    @property
    def rule_over_rounds(self) -> PassRule | None:
        """Return the rule that judges all rounds of the case together; None if each trial is judged by itself."""
        return None if self.pass_rule is None or self.pass_rule.gate == "each" else self.pass_rule

    def problems(self) -> list[str]:
        """Return paths that are used both as a file and as a folder."""
        return [
            f"case {self.id!r}: {what} has {str(folder)!r} both as a file and as a folder of others: rename one"
            for what, files in (("files", self.files), ("hidden", self.hidden), ("reference", self.reference))
            for folder in {parent for name in files if "/" in name for parent in PurePosixPath(name).parents}
            if folder in map(PurePosixPath, files)
        ]


_NOTICED = {"id", "prompt", "files", "collect", "answer_file"}
_GRADED = {"hidden", "reference", "expected", "grading", "variables"}


class SubjectSpec(FrozenModel):
    """A subject as data. `revision` covers more than the options, such as a function's source."""

    kind: Name
    name: Name
    options: CleanObject = {}
    revision: str = ""
    base: Name | None = Field(default=None, description="the subject that differs from it in the treatment only")
    transform: tuple[CleanText | dict[CleanText, CleanText], ...] = Field(
        default=(), description="changes each answer before scorers do: JMESPath, Jinja, or code by language"
    )
    treatment: str = Field(default="", description="the name of the treatment; its content is in the options")

    @cached_property
    def digest(self) -> str:
        """Return the digest of the subject in attempt keys, without names of treatments."""
        return fingerprint(self.model_dump(exclude_defaults=True, exclude={"base", "treatment"}))


CONTROLS = frozenset({"nop", "oracle", "cheat"})
"""The kinds of subjects that test the cases. They are not compared with others."""


class UntilDecided(FrozenModel):
    """Early stopping: compare subjects in pairs, and skip trials that no undecided pair needs."""

    alpha: float = Field(default=0.05, gt=0, lt=1, description="the chance that any pair is decided wrongly, at most")
    margin: float | None = Field(
        default=None, gt=0, le=1, description="a pair is equivalent within it; None decides only by a difference"
    )
    order: int | None = Field(default=None, description="puts the cases in a random order; None: the seed of the plan")

    @classmethod
    def in_new_order(cls, margin: float | None = None) -> Self:
        """Return settings with a new random order, so that runs differ in the cases they use."""
        return cls(margin=margin, order=secrets.randbits(32))


class Shard(FrozenModel):
    """One of several parts of a plan that run separately. Each takes every n-th case."""

    number: PositiveInt
    of: PositiveInt
    cases: PositiveInt = Field(description="how many cases the whole plan has")
    whole: str = Field(description="a digest of the whole plan, which all its shards have in common")
    merged: tuple[PositiveInt, ...] = Field(default=(), description="all shards here, of a merge that lacks others")

    def __str__(self) -> str:
        return f"{','.join(map(str, self.merged or (self.number,)))}/{self.of}"

    @property
    def numbers_with_cases(self) -> range:
        """Return the numbers of the shards that have at least one case."""
        return range(1, min(self.of, self.cases) + 1)


@dataclass(frozen=True, slots=True)
class Trial:
    """One case × one subject × one round. `index` is its position in the plan."""

    index: int
    case: Case
    subject: SubjectSpec
    round: int
    seed: int
    attempt_key: str
    score_key: str

    @property
    def identity(self) -> dict[str, Any]:
        """Return the fields that identify the trial in its record."""
        keys = {"attempt_key": self.attempt_key, "score_key": self.score_key}
        return {"case": self.case.id, "subject": self.subject.name, "round": self.round, **keys}


IMPORTED = "imported"
"""The door of logs of other tools, and the key of their origin in the settings of the plan."""


class Plan(FrozenModel):
    """The whole experiment. Rounds are outermost, so that all subjects advance together."""

    name: Name
    cases: tuple[Case, ...]
    subjects: tuple[SubjectSpec, ...]
    scorers: tuple[ScorerSpec, ...]
    rounds: PositiveInt = 1
    threshold: float | None = Field(default=1.0, ge=0, le=1, description="None records without passing or failing")
    seed: int = 0
    door: Name | None = Field(default=None, description="the front door that made the plan and can read its settings")
    settings: CleanObject = Field(default={}, description="settings of that door")
    sparse: bool = Field(
        default=False, description="not every subject has every case: a trial without a record was not planned"
    )
    until_decided: UntilDecided | None = Field(default=None, description="None runs every trial")
    shard: Shard | None = Field(default=None, description="which part of a larger plan this is")

    @property
    def is_imported(self) -> bool:
        """Tell whether this plan was imported from another tool, so that Bakeoff cannot run it again."""
        return self.door == IMPORTED

    @property
    def size(self) -> int:
        """Return the number of trials. A sparse plan has records for only some of them."""
        return self.rounds * len(self.cases) * len(self.subjects)

    def trial(self, index: int) -> Trial:
        """Return the trial at a position, counted from 0. Raise `IndexError` past the end."""
        if not 0 <= index < self.size:
            raise IndexError(f"trial {index} of a plan with {self.size}")
        rest, subject = divmod(index, len(self.subjects))
        round_, case = divmod(rest, len(self.cases))
        return self.trial_of(self.cases[case], self.subjects[subject], round_, index)

    def trials(self) -> Iterator[Trial]:
        """Yield all trials in order. Each is made on demand, which saves memory in large plans."""
        return map(self.trial, range(self.size))

    def find(self, case_id: str, subject: str, round_: int) -> Trial | None:
        """Return the trial of this case, subject and round (from 0), or None."""
        case_at, subject_at = self._case_places.get(case_id), self._subject_places.get(subject)
        if case_at is None or subject_at is None or not 0 <= round_ < self.rounds:
            return None
        index = (round_ * len(self.cases) + case_at) * len(self.subjects) + subject_at
        return self.trial_of(self.cases[case_at], self.subjects[subject_at], round_, index)

    def threshold_of(self, case: Case) -> float | None:
        """Return the score that one trial of a case must reach; None if it has no threshold."""
        rule = case.pass_rule
        return rule.threshold if rule is not None and rule.gate == "each" else self.threshold

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Return the scores that cases must reach, lowest first; empty if there are none."""
        rules = {self.threshold if case.pass_rule is None else case.pass_rule.threshold for case in self.cases}
        return tuple(sorted(each for each in rules if each is not None))

    @cached_property
    def every_scorer(self) -> tuple[ScorerSpec, ...]:
        """Return the scorers of the plan and those of single cases, each once."""
        own = [scorer for case in self.cases for scorer in case.scorers or ()]
        return tuple({scorer.digest: scorer for scorer in (*self.scorers, *own)}.values()) if own else self.scorers

    @property
    def scorer_names(self) -> list[str]:
        """Return the names of all scores: the plan's own first, then those of single cases."""
        names = [scorer.name or scorer.kind for scorer in self.scorers]
        own = dict.fromkeys(scorer.name or scorer.kind for scorer in self.every_scorer)
        return names + [name for name in own if name not in names]

    def with_scorers(self, scorers: tuple[ScorerSpec, ...]) -> Self:
        """Return the plan with these scorers for every case, even if the case had its own."""
        cases = tuple(
            case if case.scorers is None else case.model_copy(update={"scorers": None}) for case in self.cases
        )
        return self.with_changes(scorers=scorers, cases=cases)

    @property
    def ends_when_decided(self) -> bool:
        """Return True if the plan can end early. Sparse plans (of pytest sessions) cannot."""
        return self.until_decided is not None and not self.sparse

    @property
    def compared(self) -> tuple[str, ...]:
        """Return the names of the subjects that are not controls."""
        return tuple(spec.name for spec in self.subjects if spec.kind not in CONTROLS)

    @property
    def origin(self) -> Origin:
        """Return the origin of the cases. All its fields are empty if it is unknown."""
        try:
            return Origin.model_validate(self.settings.get(ORIGIN) or {})
        except ValidationError:  # each door decides what its settings hold
            return Origin()

    def from_origin(self, **changes: Any) -> Self:
        """Return the plan with changes to the origin of its cases."""
        origin = self.origin.model_copy(update=changes).model_dump(mode="json", exclude_defaults=True)
        return self.with_changes(settings={**self.settings, ORIGIN: origin})

    def with_changes(self, **changes: Any) -> Self:
        """Return a changed copy of the plan. `model_copy` would also copy the cached properties."""
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | changes)

    def take_shard(self, number: int, of: int, *, largest: int = 0) -> Self:
        """Return one of `of` parts of the plan: case `number` and every `of`-th case after it.

        If several plans are split in the same way, `largest` is the number of cases of the largest.
        The smaller plans may then have fewer cases than shards.

        Raises `UsageError` if there are fewer cases than shards, or if the plan can end early.
        """
        if self.ends_when_decided:
            raise UsageError(
                f"shard {number}/{of}: plan {self.name!r} is to run until decided, which needs all cases in one run: "
                "leave out one of the two"
            )
        if of > max(largest, len(self.cases)) or number > len(self.cases):
            raise UsageError(
                f"shard {number}/{of}: plan {self.name!r} has only {count_of(len(self.cases), 'case')}: "
                f"part it into at most {len(self.cases)} shards"
            )
        shard = Shard(number=number, of=of, cases=len(self.cases), whole=self._whole_digest)
        return self.with_changes(cases=self.cases[number - 1 :: of], shard=shard)

    @property
    def _whole_digest(self) -> str:
        cases = [(case.attempt_digest, case.score_digest) for case in self.cases]
        subjects = [(spec.name, spec.digest) for spec in self.subjects]
        return fingerprint(cases, subjects, self._scorers_digest, self.rounds, self.seed)

    def problems(self) -> list[str]:
        """Return the problems of the plan. Subjects and scorers are checked when they are built."""
        found = [
            f"plan {self.name!r} has no {what}: add at least one"
            for what, items in (("cases", self.cases), ("subjects", self.subjects), ("scorers", self.every_scorer))
            if not items
        ]
        for what, names in (
            ("case id", [case.id for case in self.cases]),
            ("subject name", [subject.name for subject in self.subjects]),
        ):
            twice = [name for name, count in Counter(names).items() if count > 1]
            found += [f"{what} {name!r} is used more than once in plan {self.name!r}: rename one" for name in twice]
        if self.ends_when_decided and len(self.compared) < 2:
            found.append(
                f"plan {self.name!r} is to run until decided, which compares subjects in pairs, and has "
                f"{count_of(len(self.compared), 'subject')} to compare (controls do not count): "
                "add one, or run every trial"
            )
        return found + [problem for case in self.cases for problem in case.problems()]

    def trial_of(
        self, case: Case, subject: SubjectSpec, round_: int, index: int, *, limits: Limits | None = None
    ) -> Trial:
        """Return a trial of a case and a subject, with the keys that it has in this plan.

        `limits`, if given, replace the limits of the case in the keys.
        """
        attempt = case.attempt_digest if limits is None else case.attempt_digest_within(limits)
        score = case.score_digest if limits is None else case.score_digest_within(limits)
        attempt_key = _key(attempt, subject.digest, str(round_), str(self.seed))
        score_key = _key(attempt_key, score, self._scorers_digest)
        return Trial(index, case, subject, round_, self.seed + round_, attempt_key, score_key)

    @cached_property
    def _scorers_digest(self) -> str:
        return fingerprint([scorer.digest for scorer in self.scorers], self.threshold)

    @cached_property
    def _case_places(self) -> dict[str, int]:
        return {case.id: place for place, case in enumerate(self.cases)}

    @cached_property
    def _subject_places(self) -> dict[str, int]:
        return {subject.name: place for place, subject in enumerate(self.subjects)}


def _key(*digests: str) -> str:
    return hashlib.blake2b("|".join(digests).encode(), digest_size=16).hexdigest()


def describe(spec: SubjectSpec | ScorerSpec) -> str:
    """Return the name of a spec for error messages."""
    return f"subject {spec.name!r} ({spec.kind})" if isinstance(spec, SubjectSpec) else f"scorer {spec.kind!r}"


def read_options(spec: SubjectSpec | ScorerSpec, model: type[Options]) -> Options:
    """Return the options of a spec, validated by the model of its kind."""
    return check_options(spec.options, model, describe(spec))


def check_options(options: Mapping[str, Any], model: type[Options], who: str) -> Options:
    """Return the validated options. Raise UsageError with all problems, values and known names."""
    try:
        return model.model_validate(options, context=who)
    except ValidationError as error:
        allowed = ", ".join(model.model_fields) or "none"
        problems = "; ".join(
            f"option {'.'.join(map(str, item['loc']))}: {in_our_words(item)}" for item in error.errors()
        )
        raise UsageError(f"{who}: {problems}. Its options are: {allowed}") from error
