"""Read a result file, in any of its forms, into a plan and records."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from bakeoff._kernel.files import open_file
from bakeoff._kernel.text import visible
from bakeoff.doors.components.results.model import (
    SUITE,
    VERIFICATION,
    ComponentResult,
    ComponentsAdditions,
    ComponentsMetadata,
    ComponentsResult,
    RecordedSubject,
    TrialFacts,
    read_step,
    stamp_in,
)
from bakeoff.doors.result_files import read_limited, unreadable
from bakeoff.logs.trials import RECORDED, seconds_of
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec, Trial
from bakeoff.record import NO_USAGE, PROVEN_TESTS, UNIT_TESTS, Failure, Phase, Record, Score, Transcript
from bakeoff.report.readers import Circumstances, Description
from bakeoff.verdict import Verdict

DOOR = "components"
COMPONENT = "Component.svelte"
NO_TESTS = Case(id="(no tests)", prompt="")
"""The case of a file without tests, since a plan needs at least one case."""

_HEAD = 4096
_NAME = re.compile(r"result-\d{4}-\d{2}-\d{2}-.*\.json")
_BEGINS = re.compile(rb'\s*\{\s*"(tests|steps|resultWriteContent)"\s*:')
_ESCAPES = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)
_METADATA_FIRST = re.compile(rb'\s*\{\s*"metadata"\s*:\s*\{[^{}]*"(mcpEnabled|mcpServerUrl)"\s*:')


class ResultFileReader:
    """The reader of result files of the component benchmark."""

    what = "a result file of the component benchmark (.json)"

    def recognises(self, path: Path) -> bool:
        """Tell whether a file has the format, by its name or else by its first keys, without reading all of it."""
        if path.suffix != ".json" or not path.is_file():
            return False
        if _NAME.fullmatch(path.name):
            return True
        with open_file(path) as file:
            head = file.read(_HEAD)
        return bool(_BEGINS.match(head) or _METADATA_FIRST.match(head))

    def describe(self, path: Path) -> Description:
        # The file has the prompts, but not the tests that graded the answers.
        result = read_result(path)
        run = result.bakeoff.run if result.bakeoff else None
        return Description(name=path.name, plan=plan_of(result, path.stem), content_known=False, run=run)

    def circumstances(self, path: Path) -> Circumstances:
        added = read_result(path).bakeoff
        return Circumstances(versions=(added.version,) if added else ())

    def read(self, path: Path) -> Iterator[Record]:
        result = read_result(path)
        return records_of(result, plan_of(result, path.stem))


def read_result(path: Path) -> ComponentsResult:
    """Read a file. Raise an error that says where something is wrong in it."""
    result = parse_result(read_limited(path), str(path))
    if result.metadata.timestamp is None and (stamp := stamp_in(path.name)) is not None:
        dated = result.metadata.model_copy(update={"timestamp": stamp})
        return result.model_copy(update={"metadata": dated})
    return result


def parse_result(data: bytes, source: str) -> ComponentsResult:
    """Read the contents of a file. Raise an error that says where something is wrong in it."""
    try:
        # JavaScript writes a lone surrogate as an escape, for instance where a text was cut.
        whole = _ESCAPES.sub(lambda escape: rb"\ufffd" if escape["half"] else escape[0], data)
        return ComponentsResult.model_validate_json(whole)
    except ValidationError as error:
        # A file of one test has its fields at the top.
        raise unreadable(source, error, () if b'"tests"' in data else ("tests", 0)) from error


def plan_of(result: ComponentsResult, name: str) -> Plan:
    """Return the plan of a file: its tests, and its one subject."""
    return Plan(
        name=name if name.isprintable() and name.strip() else "result",
        cases=tuple(Case(id=test.test_name, prompt=test.prompt) for test in result.tests) or (NO_TESTS,),
        subjects=(_subject(result.metadata, result.bakeoff),),
        scorers=(ScorerSpec(kind=SUITE),),
        door=DOOR,
    )


def _subject(metadata: ComponentsMetadata, added: ComponentsAdditions | None) -> SubjectSpec:
    had = {name: getattr(metadata, name) for name in metadata.model_fields_set}
    more = {"bakeoff": added.model_copy(update={"trials": ()})} if added else {}
    # A model with a server is another subject than the same without.
    server = f" + {visible(metadata.mcp_server_url or 'MCP', 100)}" if metadata.mcp_enabled else ""
    return SubjectSpec(
        kind=RECORDED,
        name=added.subject if added else f"{metadata.model}{server}",
        options=RecordedSubject(**had, **more).model_dump(mode="json"),
    )


def records_of(result: ComponentsResult, plan: Plan) -> Iterator[Record]:
    """Return one record for each test of the file."""
    facts = {fact.test_name: fact for fact in (result.bakeoff.trials if result.bakeoff else ())}
    began = seconds_of(result.metadata.timestamp) or 0.0
    costs = _shares(result)
    for place, test in enumerate(result.tests):
        yield _Import(plan.trial(place), test, facts.get(test.test_name), began, costs[place]).record(plan.threshold)


@dataclass(frozen=True, slots=True)
class _Import:
    """The conversion of one test of a file into a record."""

    trial: Trial
    test: ComponentResult
    facts: TrialFacts | None
    began: float
    cost: float | None

    def record(self, threshold: float | None) -> Record:
        steps = tuple(map(read_step, self.test.steps))
        transcript = Transcript(steps=steps, usage=sum((step.usage for step in steps), NO_USAGE))
        facts, written, checked = self.facts, self.test.result_write_content, self.test.verification
        graded = facts.score_seconds if facts else checked.duration / 1000 if checked else None
        return Record(
            **self.trial.identity,
            started=facts.started if facts and facts.started is not None else self.began,
            tries=facts.tries if facts and facts.tries else 1,
            bound=bool(facts and facts.bound),
            threshold=threshold,
            attempt=self._attempt(),
            score=None if graded is None else Phase(seconds=graded),
            transcript=transcript,
            artefacts={} if written is None else {COMPONENT: written},
            scores=self._scores(),
            spent=transcript.usage.model_copy(update={"cost": self.cost}),
        )

    def _failure(self, *kinds: Verdict) -> Failure | None:
        facts = self.facts
        if facts is None or facts.verdict not in kinds:
            return None
        return Failure.model_validate({"kind": facts.verdict.value, "type": "Recorded", "message": facts.reason or ""})

    def _attempt(self) -> Phase | None:
        seconds = self.facts.attempt_seconds if self.facts else None
        failure = self._failure(Verdict.TIMEOUT, Verdict.BUDGET, Verdict.INFRA)
        if seconds is None and failure is None and self.facts is not None:
            return None
        return Phase(seconds=seconds or 0.0, failure=failure)

    def _scores(self) -> tuple[Score, ...]:
        broken = self._failure(Verdict.GRADER)
        if broken is not None:
            return (Score(name=SUITE, failure=broken),)
        found = self.test.verification
        if found is None:
            # A model that answered and handed nothing in has failed; else nothing is known.
            if self.facts is not None and not self.facts.verdict.counts:
                return ()
            if self.test.steps and self.test.result_write_content is None:
                return (Score(name=SUITE, value=0.0, reason="nothing was handed in"),)
            return (Score(name=SUITE, reason="the file has no verification"),)
        reason = (self.facts.reason or "") if self.facts else found.reason
        metadata = {VERIFICATION: found.model_dump(mode="json"), UNIT_TESTS: found.unit_tests.model_dump()}
        if self.facts is not None and self.facts.proven_tests is not None:
            metadata[PROVEN_TESTS] = self.facts.proven_tests.model_dump()
        return (Score(name=SUITE, value=found.value, reason=reason, metadata=metadata),)


def _shares(result: ComponentsResult) -> list[float | None]:
    """Split the file's total cost over its tests by their tokens."""
    total = result.metadata.total_cost
    if total is None:
        return [None] * len(result.tests)
    used = [[step.usage for step in test.steps if step.usage is not None] for test in result.tests]
    tokens = [sum((usage.input_tokens or 0) + (usage.output_tokens or 0) for usage in usages) for usages in used]
    weights = tokens if any(tokens) else [1] * len(tokens)
    return [total.total_cost * weight / sum(weights) for weight in weights]
