"""Convert records and cases to the JSON that a page shows: texts are cut, and control characters made visible.

Each picture of a component goes into the page once, as data that browsers do not treat as markup.
"""

import base64
from collections.abc import Mapping
from difflib import unified_diff
from typing import IO, Any

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import to_json

from bakeoff._kernel.text import visible
from bakeoff.plan import Case
from bakeoff.record import TESTS, Failure, Reasoning, Record, Score, Step, TestResult, Text, ToolCall, Usage
from bakeoff.report.formatting import shown
from bakeoff.report.render.html.render import NAME, ChunkWriter
from bakeoff.storage.pictures import Pictures, picture_key
from bakeoff.storage.run_folder import RunFolder
from bakeoff.subjects.agent_run import stderr_in

Json = dict[str, Any]

_MAX_COMPARED = 4000  # lines of a file that are compared with the start: the time grows with their square
_STDERR_LINES = 20
_HANDS_IN = "ResultWrite"  # the tool with which subjects hand in a component; the first call counts
_NOT_SHOWN = "(the reference, which is not shown)"
_TEST_LIST = TypeAdapter(list[TestResult])


def as_text(value: JsonValue) -> str | None:
    """Return any data as text: a string as it is, anything else as JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return shown(value)
    return shown(to_json(value, indent=2).decode())


def case_detail(case: Case) -> Json:
    """Return the prompt and files that a subject was given, but only the names of hidden files.

    Pages are shared: if a case has hidden files or a reference, its expected answer is hidden, too.
    """
    hidden = bool(case.hidden or case.reference)
    return _filled(
        prompt=shown(case.prompt),
        expected=None if hidden else as_text(case.expected),
        expected_hidden=hidden and case.expected is not None,
        # Variables may hold what graders look for.
        variables={} if hidden else {visible(name, NAME): as_text(value) for name, value in case.variables.items()},
        files={visible(name, NAME): shown(text) for name, text in case.files.items()},
        hidden=[visible(name, NAME) for name in (*case.hidden, *case.reference)],
        tags={visible(key, NAME): visible(value, NAME) for key, value in case.tags.items()},
    )


def record_detail(record: Record, case: Case | None = None) -> Json:
    """Return everything that the page shows of a trial; given its case, also the changes to its initial files."""
    transcript = record.transcript
    answer = _to_show(handed_in(record, case), case, bound=record.bound)
    printed = stderr_in(transcript).strip().splitlines() if transcript else []
    return _filled(
        started=record.started,
        tries=record.tries,
        bound=record.bound,
        answers=record.answers,
        phases=[
            _filled(name=name, seconds=phase.seconds, waited=phase.waited or None, failure=_failure(phase.failure))
            for name in ("prepare", "attempt", "score")
            if (phase := getattr(record, name))
        ],
        steps=[_step(step) for step in transcript.steps] if transcript else None,
        output=_output(record),
        about=as_text(dict(transcript.metadata) or None) if transcript else None,
        scores=[_score(score) for score in record.scores],
        tests=[_test(test) for score in record.scores for test in tests_of(score)],
        files={visible(name, NAME): shown(text) for name, text in answer.items()},
        changes={visible(name, NAME): shown(text) for name, text in changes(answer, case).items()},
        stderr=None if record.verdict.ok or transcript is None else shown("\n".join(printed[-_STDERR_LINES:])),
        refused={visible(name, NAME): visible(why, 1000) for name, why in record.refused.items()},
        workspace=visible(record.workspace, 1000) if record.workspace else None,
        spent=_usage(record.used),
        judging=_usage(record.judging),
    )


def handed_in(record: Record, case: Case | None) -> Mapping[str, str]:
    """Return the files of the answer; for a component, take the accepted `ResultWrite` call."""
    if record.artefacts or record.transcript is None:
        return record.artefacts
    name = case.grading.solution[0] if case and case.grading and case.grading.solution else "answer"
    for call in record.transcript.tool_calls:
        content = call.arguments.get("content") if isinstance(call.arguments, dict) else None
        if call.name == _HANDS_IN and call.error is None and isinstance(content, str):
            return {name: content}
    return {}


def _to_show(answer: Mapping[str, str], case: Case | None, *, bound: bool) -> Mapping[str, str]:
    """Return the files to show, without unchanged tests and without the reference.

    A subject that was given the reference hands it in, but a page that is shared must not show it.
    """
    if case is None:
        return answer
    tests = case.grading.tests if case.grading else ()
    start = {**case.hidden, **case.files}
    kept = {name: text for name, text in answer.items() if name not in tests or start.get(name) != text}
    hidden = set(case.reference.values()) if bound else set()
    return {name: _NOT_SHOWN if text in hidden else text for name, text in kept.items()}


def changes(answer: Mapping[str, str], case: Case | None) -> dict[str, str]:
    """Return a patch for each file that existed at the start; it is empty for unchanged files."""
    found = {}
    for name, text in answer.items():
        start = case.files.get(name) if case else None
        before, after = (start or "").splitlines(), text.splitlines()
        if start is None or text == _NOT_SHOWN or max(len(before), len(after)) > _MAX_COMPARED:
            continue
        found[name] = "\n".join(unified_diff(before, after, f"{name} at the start", name, lineterm=""))
    return found


def tests_of(score: Score) -> list[TestResult]:
    """Return the tests of a score one by one, failed ones first. Result files list only failed tests."""
    try:
        tests = _TEST_LIST.validate_python(score.metadata.get(TESTS) or _failed_tests(score.metadata))
    except ValidationError:  # a scorer may put anything there
        return []
    return sorted(tests, key=lambda test: test.passed)


def _failed_tests(metadata: Mapping[str, JsonValue]) -> list[Json]:
    verification, exercise = metadata.get("verification"), metadata.get("exercise")
    named = verification.get("failedTests") if isinstance(verification, dict) else None
    if isinstance(named, list):
        pairs = [(test.get("fullName"), test.get("errorMessage") or "") for test in named if isinstance(test, dict)]
        return [{"name": name, "passed": False, "message": message} for name, message in pairs]
    names = exercise.get("failedTests") if isinstance(exercise, dict) else None
    return [{"name": name, "passed": False} for name in names] if isinstance(names, list) else []


def _test(test: TestResult) -> Json:
    return _filled(
        name=visible(test.name, 2 * NAME), passed=test.passed or None, message=shown(test.message), hidden=test.hidden
    )


def _output(record: Record) -> str | None:
    """Return the output, unless it is the text of the last step."""
    transcript = record.transcript
    if transcript is None:
        return None
    last = transcript.steps[-1].parts if transcript.steps else ()
    said = "".join(part.text for part in last if isinstance(part, Text))
    return None if said and transcript.output == said else as_text(transcript.output)


def _failure(failure: Failure | None) -> Json | None:
    if failure is None:
        return None
    return _filled(
        kind=failure.kind,
        type=visible(failure.type, NAME),
        message=shown(failure.message),
        detail=shown(failure.detail),
        permanent=failure.permanent,
    )


def _score(score: Score) -> Json:
    return _filled(
        name=visible(score.name, NAME),
        value=score.value,
        reason=shown(score.reason),
        about=as_text({key: value for key, value in score.metadata.items() if key != TESTS} or None),
        failure=_failure(score.failure),
    )


def _step(step: Step) -> Json:
    return _filled(
        parts=[_part(part) for part in step.parts],
        usage=_usage(step.usage),
        finish=visible(step.finish_reason, NAME) if step.finish_reason else None,
        seconds=step.seconds,
    )


def _part(part: Text | Reasoning | ToolCall) -> Json:
    if not isinstance(part, ToolCall):
        return {"type": part.type, "text": shown(part.text)}
    return _filled(
        type="tool",
        name=visible(part.name, NAME),
        arguments=as_text(part.arguments),
        result=as_text(part.result),
        error=shown(part.error) if part.error else None,
        ms=part.duration_ms,
    )


def _usage(usage: Usage) -> Json | None:
    return usage.model_dump(exclude_defaults=True) or None


def _filled(**fields: Any) -> Json:
    """Drop empty fields, because most fields of most records are empty."""
    return {name: value for name, value in fields.items() if value or (value == 0 and value is not False)}


NO_PICTURE, NO_ANSWER = -1, -2
_MAX_BYTES = 40_000_000  # of all pictures of a page
_TOO_MANY = "the pictures of this run are too large for one page; they are in its folder `pictures`"


class PagePictures:
    """The pictures of a page, collected while its records are read."""

    def __init__(self, folder: RunFolder | None) -> None:
        self._pictures = Pictures.of(folder) if folder is not None and folder.pictures.is_dir() else None
        self._numbers: dict[str, int] = {}

    def find(self, record: Record, case: Case) -> int:
        """Return the number of a trial's picture, or else `NO_PICTURE` or `NO_ANSWER`."""
        if self._pictures is None or case.grading is None:
            return NO_PICTURE
        text = handed_in(record, case).get(case.grading.solution[0])
        if text is None:
            return NO_ANSWER
        if not self._pictures.has(key := picture_key(case, text)):
            return NO_PICTURE
        return self._numbers.setdefault(key, len(self._numbers))

    def write(self, data: IO[bytes]) -> dict[str, Any]:
        """Write all pictures that were found, and return their places. Memory holds one chunk."""
        chunks, places, room = ChunkWriter(data, "pictures"), [], _MAX_BYTES
        for key in self._numbers:
            found = self._pictures.read(key) if self._pictures else None
            room -= len(found.png) if found else 0
            if found is None or room < 0:
                places.append(chunks.add({"problem": _TOO_MANY if found else "the picture is gone"}))
            elif found.problem:
                places.append(chunks.add({"problem": visible(found.problem, 500)}))
            else:
                places.append(chunks.add({"png": base64.b64encode(found.png).decode()}))
        chunks.close()
        return {"pictures": places}
