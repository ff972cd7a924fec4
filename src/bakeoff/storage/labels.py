"""Labels that people gave to answers: append-only JSON lines beside the journal.

Every line is on disk before the next answer is shown. A labeller's last line about an answer
counts; a line without a label withdraws the label. Several people can write at once. Incomplete
lines, left by a crash, are ignored. Lines have numbers and checksums, as in the journal.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, ValidationError

from bakeoff._kernel.files import lock_file, open_file, open_to_append, os_errors_explained, read_file, sync_folder
from bakeoff._kernel.json import CleanText
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff.storage.journal import write_all
from bakeoff.storage.journal_lines import Totals, count_lines, end_of_lines, line_end, seal_line, sequence_damage

Choice = Literal["pass", "fail", "skip"]
MAX_NOTE_LENGTH = 10_000


class Label(FrozenModel):
    """One line of the file. It names the subject, which labellers do not see."""

    v: Literal[1, 2] = 2
    time: float
    labeller: CleanText = Field(min_length=1, max_length=100)
    scorer: str  # the judge whose scores the label is compared with
    case: str
    subject: str
    round: int
    attempt_key: str
    answer: str  # the fingerprint of the answer that was shown
    judged: float = Field(ge=0, le=1)  # the judge's score when the label was given
    stratum: int  # the stratum of the judge's score, within the subject
    size: int = Field(ge=1)  # number of trials in that stratum
    label: Choice | None  # None withdraws an earlier label
    note: CleanText = Field(default="", max_length=MAX_NOTE_LENGTH)

    @property
    def trial(self) -> tuple[str, str, str]:
        """Return the judge, attempt and answer that the label is about."""
        return self.scorer, self.attempt_key, self.answer


@dataclass(frozen=True, slots=True)
class Labels:
    """The valid labels of a run."""

    by_labeller: dict[str, dict[tuple[str, str, str], Label]]
    damaged: int = 0  # lines that cannot be read

    def of_scorer(self, scorer: str) -> dict[tuple[str, str], dict[str, Label]]:
        """Return the labels for a judge, by attempt and answer and then by labeller."""
        found: dict[tuple[str, str], dict[str, Label]] = {}
        for labeller, labels in self.by_labeller.items():
            for (name, attempt, answer), label in labels.items():
                if name == scorer and label.label in ("pass", "fail"):
                    found.setdefault((attempt, answer), {})[labeller] = label
        return found

    def skipped(self, scorer: str) -> set[tuple[str, str]]:
        """Return the attempts and answers that people skipped and nobody labelled."""
        every = {trial[1:] for labels in self.by_labeller.values() for trial in labels if trial[0] == scorer}
        return every - self.of_scorer(scorer).keys()

    @property
    def scorers(self) -> set[str]:
        """Return the judges for which there are labels."""
        return {name for labels in self.by_labeller.values() for name, _, _ in labels}


def answer_digest(output: JsonValue, files: Mapping[str, str]) -> str:
    """Return a fingerprint of an answer, since a label is valid only for the shown answer."""
    return fingerprint(output, dict(files))[:16]


def read_labels(path: Path) -> Labels:
    """Read the labels of a run. Without a file, there are none."""
    by_labeller: dict[str, dict[tuple[str, str, str], Label]] = {}
    if not path.exists():
        return Labels({})
    with os_errors_explained(path, "read"), open_file(path) as file:
        raw = read_file(path)
        damaged = sum(1 for _ in sequence_damage(file))
    for label in _labels_in(raw):
        if label is None:
            damaged += 1
            continue
        own = by_labeller.setdefault(label.labeller, {})
        own.pop(label.trial, None)
        if label.label is not None:
            own[label.trial] = label
    return Labels(by_labeller, damaged)


def append_missing(path: Path, other: bytes) -> None:
    """Append the labels of another copy of the file, unless this one has them or newer ones."""
    here = _labels_in(read_file(path) if path.exists() else b"")
    newest = {(label.labeller, label.trial): label.time for label in here if label is not None}
    last = {(label.labeller, label.trial): label for label in _labels_in(other) if label is not None}
    for key, label in last.items():  # even if it withdraws a label
        if label.time > newest.get(key, float("-inf")):
            append_label(path, label)


def _labels_in(raw: bytes) -> Iterator[Label | None]:
    """Yield the label of each line; None if it is damaged. Ignore an incomplete last line."""
    for line in raw.split(b"\n")[:-1]:
        end = line_end(line + b"\n")
        label = None
        if end is None or end.intact:
            with suppress(ValidationError):
                label = Label.model_validate_json(line if end is None else line[: end.begin] + b"}")
        yield None if label is None or (end is None and label.v > 1) else label


def append_label(path: Path, label: Label) -> None:
    """Write a label durably, after removing an incomplete last line."""
    with os_errors_explained(path, "written", hint="the label was not kept"):
        descriptor = open_to_append(path)
        try:
            lock_file(descriptor, path, wait=True)
            os.ftruncate(descriptor, end_of_lines(descriptor))
            start = os.lseek(descriptor, 0, os.SEEK_END)
            with open_file(path) as file:
                number = count_lines(file)[1] + 1
            try:
                write_all(descriptor, seal_line(label.model_dump_json().encode()[:-1], number, Totals()))
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, start)  # write a label completely or not at all
                raise
        finally:
            os.close(descriptor)
        sync_folder(path.parent)
