"""Collect records in a file while they are read, and return them in the order of their plan."""

import tempfile
from array import array
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Self

from bakeoff.plan import Case, Plan, SubjectSpec
from bakeoff.record import Record
from bakeoff.report.summary import CaseVerdicts, RunTally, Summary, is_control
from bakeoff.stats.cells import Cell
from bakeoff.verdict import CaseVerdict, Verdict

_VERDICTS = tuple(Verdict)


class RunRecords:
    """Records in a private temporary file. Memory holds 16 bytes for each: place and verdict."""

    def __init__(self, plan: Plan, records: Iterable[Record]) -> None:
        self.plan = plan
        self._cases = CaseVerdicts(plan)
        self._tally = RunTally(plan)
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._bound: set[str] = set()
        self._places: dict[tuple[str, str], array[int]] = {}  # round and verdict, then place, of each record
        try:
            for record in records:
                place = self._file.seek(0, 2)
                self._file.write(record.model_dump_json(exclude_defaults=True).encode() + b"\n")
                self._cases.add(record)
                self._tally.add(record)
                if record.bound:
                    self._bound.add(record.subject)
                numbers = record.round * len(_VERDICTS) + _VERDICTS.index(record.verdict)
                self._places.setdefault((record.subject, record.case), array("q")).extend((numbers, place))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return sum(map(len, self._places.values())) // 2

    @cached_property
    def summary(self) -> Summary:
        """Return the numbers of all records."""
        return self._tally.summary()

    def cells(self, subject: str) -> dict[str, Cell]:
        """Return the cases of a subject that have a score."""
        return self._tally.cells(subject)

    @property
    def judged(self) -> tuple[SubjectSpec, ...]:
        """Return the subjects without controls; all, if there are only controls."""
        specs = self.plan.subjects
        return tuple(spec for spec in specs if not self.is_control(spec)) or specs

    def is_control(self, spec: SubjectSpec) -> bool:
        """Tell whether a subject is a control: by its kind, or because it was given hidden parts."""
        return is_control(spec, bound=spec.name in self._bound)

    def verdicts(self, subject: str, case: str) -> list[Verdict]:
        """Return the verdict of each finished round, without reading the records."""
        return [_VERDICTS[numbers % len(_VERDICTS)] for numbers, _ in self._in_order(subject, case)]

    def case_verdict(self, subject: str, case: str) -> CaseVerdict:
        """Return the verdict of a case over all its rounds, without reading the records."""
        return self._cases.of(subject, case)

    def cases_of(self, subject: str) -> list[Case]:
        """Return the cases of a subject: all of the plan or, if the plan is sparse, those that have records."""
        if not self.plan.sparse:
            return list(self.plan.cases)
        return [case for case in self.plan.cases if (subject, case.id) in self._places]

    def rounds(self, subject: str, case: str) -> Iterator[Record]:
        """Yield the finished rounds of one case."""
        for _, place in self._in_order(subject, case):
            self._file.seek(place)
            yield Record.model_validate_json(self._file.readline())

    def of_subject(self, subject: str) -> Iterator[Record]:
        """Yield one subject's records, case by case and round by round."""
        for case in self.plan.cases:
            yield from self.rounds(subject, case.id)

    def records(self) -> Iterator[Record]:
        """Yield all records, subject by subject."""
        for subject in self.plan.subjects:
            yield from self.of_subject(subject.name)

    def _in_order(self, subject: str, case: str) -> list[tuple[int, int]]:
        """Return the packed round and verdict, and the file position, of each record of a case, in order of rounds."""
        packed = self._places.get((subject, case), ())
        return sorted(zip(packed[::2], packed[1::2], strict=True))
