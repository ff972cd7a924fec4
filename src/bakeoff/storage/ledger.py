"""Count the planned parts of a run, and the result of each.

Every gate reads a ledger, and every file that is merged, compared or gated has one. Missing parts
are undecided: a gate cannot pass because something did not run.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Self

from bakeoff._kernel.model import FrozenModel, sparse_field
from bakeoff._kernel.text import count_of, visible
from bakeoff.record import LABEL, Record, Score
from bakeoff.verdict import LOST, Verdict

Missing = Literal["not run", "skipped", "unfinished", "budget", "infra", "grader", "unscored"]

NOT_RUN, SKIPPED, UNFINISHED = "NotRun", "Skipped", "Unfinished"
"""Failure types of parts that have no result because they never ended; see `missing_kind`."""

_KINDS: Mapping[str, Missing] = {NOT_RUN: "not run", SKIPPED: "skipped", UNFINISHED: "unfinished"}
_OF_VERDICTS: Mapping[Verdict, Missing] = {Verdict.BUDGET: "budget", Verdict.GRADER: "grader"}
_WORDS: Mapping[Missing, str] = {
    "not run": "not run",
    "skipped": "skipped",
    "unfinished": "started and not finished",
    "budget": "lost to the budget",
    "infra": "lost to infra",
    "grader": "lost to a grader",
    "unscored": "without a score",
}
_MAX_NAMED = 20


class ShardsHere(FrozenModel):
    """The shards of a run that are present."""

    of: int
    numbers: tuple[int, ...]
    collection: str | None = sparse_field(None)  # digest of all evals before sharding, if known

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        """Return the shards of several files together; None if none is a shard."""
        if not parts:
            return None
        numbers = sorted({number for part in parts for number in part.numbers})
        collection = next(filter(None, (part.collection for part in parts)), None)
        return cls(of=max(part.of for part in parts), numbers=tuple(numbers), collection=collection)

    @property
    def missing(self) -> tuple[int, ...]:
        """Return the numbers of the missing shards."""
        return tuple(number for number in range(1, self.of + 1) if number not in self.numbers)


class Ledger(FrozenModel):
    """Counts of planned parts and results. A part is a trial or, with pytest, an eval."""

    planned: int
    passed: int = 0
    failed: int = 0  # failed, including timeouts
    recorded: int = 0  # finished without a threshold
    missing: dict[Missing, int] = {}
    not_needed: int = 0  # because every comparison was decided
    unscored: int = 0  # of the recorded ones, those without a score
    silent: dict[str, int] = sparse_field({})  # scorers that gave no number for any part, with their parts
    named: tuple[str, ...] = ()  # the first of the missing ones, with the reason
    ended: bool = True  # False: the run was stopped, or not all of it could be collected or read
    problem: str = sparse_field("")  # that made it so, if it is known
    shards: ShardsHere | None = None

    @property
    def undecided(self) -> int:
        """Return the number of parts without a result, or without the number of a scorer that never gave one."""
        missing = sum(self.missing.values())
        return missing + max(0, min(sum(self.silent.values()), self.planned - missing))

    @property
    def for_scores(self) -> Self:
        """Return the ledger for a gate on scores, which counts parts without score as missing."""
        return self.model_copy(update={"missing": self.missing | {"unscored": self.unscored}})

    @property
    def of_its_shard(self) -> Self:
        """Return the ledger for a gate on this shard alone. Others do not count as missing."""
        return self.model_copy(update={"shards": None})

    @property
    def gap(self) -> str | None:
        """Return why it is unknown how many parts are missing; None if it is known."""
        if self.shards is not None and (absent := self.shards.missing):
            names = ", ".join(map(str, absent))
            return f"{'shard' if len(absent) == 1 else 'shards'} {names} of {self.shards.of} missing"
        if not self.ended:
            return self.problem or "the run was stopped before its end, or not all of it could be collected and read"
        return None

    def without_end(self, problem: str = "") -> Self:
        """Return the ledger, marked so that the number of missing parts is unknown."""
        return self.model_copy(update={"ended": False, "problem": problem})

    @property
    def words(self) -> str:
        """Return the missing parts by kind, such as `2 not run, 1 skipped`."""
        parts = [f"{count:,} {_WORDS[kind]}" for kind, count in self.missing.items() if count]
        parts += [
            f"{count:,} unscored by {visible(name, 80)}, which scored nothing" for name, count in self.silent.items()
        ]
        return ", ".join(parts)

    @classmethod
    def total(cls, ledgers: Iterable[Self]) -> Self:
        """Add up several ledgers."""
        each = list(ledgers)
        missing, silent = Counter[Missing](), Counter[str]()
        for one in each:
            missing.update(one.missing)
            silent.update(one.silent)
        sums = {
            name: sum(getattr(one, name) for one in each)
            for name in ("planned", "passed", "failed", "recorded", "not_needed", "unscored")
        }
        shards = ShardsHere.joined([one.shards for one in each if one.shards is not None])
        named = tuple(name for one in each for name in one.named)[:_MAX_NAMED]
        ends = {
            "ended": all(one.ended for one in each),
            "problem": next((one.problem for one in each if one.problem), ""),
        }
        return cls(**sums, **ends, missing=dict(missing), silent=dict(silent), named=named, shards=shards)


def missing_kind(record: Record) -> Missing | None:
    """Return why a part with this record counts as missing; None if it is finished."""
    if record.verdict not in LOST:
        return None
    own = _KINDS.get(record.failure.type) if record.failure is not None else None
    return own or _OF_VERDICTS.get(record.verdict, "infra")


def scorers_heard(scores: Iterable[Score]) -> set[tuple[str, bool]]:
    """Return the scorers of a part, each with whether it gave a number. Scorers that only give labels are left out."""
    return {(score.name, score.value is not None) for score in scores if LABEL not in score.metadata}


def silent_scorers(heard: Counter[tuple[str, bool]]) -> dict[str, int]:
    """Return the scorers that never gave a number, with the number of parts that they were to score."""
    return {name: count for (name, gave), count in heard.items() if not gave and not heard[name, True]}


def describe(ledger: Ledger, unit: str) -> str:
    """Return all counts of a ledger in one line."""
    parts = [f"{count:,} {word}" for word in ("passed", "failed", "recorded") if (count := getattr(ledger, word))]
    parts += [ledger.words] if ledger.undecided else []
    parts += [f"{ledger.not_needed:,} not needed"] if ledger.not_needed else []
    parts += [] if ledger.ended else ["incomplete"]
    here = ledger.shards
    shard = f"shard {', '.join(map(str, here.numbers))} of {here.of}: " if here is not None and here.missing else ""
    return f"{shard}{count_of(ledger.planned, unit)} planned: {', '.join(parts) or 'none finished'}"
