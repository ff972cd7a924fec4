"""Subjects, scorers, resources and plans that do what a test says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bakeoff.engine.registry import Registry, default_registry
from bakeoff.errors import InfraError
from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import Needs, ScoreInput, Task
from bakeoff.record import Record, Transcript
from bakeoff.storage.journal import JournalMark
from bakeoff.storage.run_folder import RunFolder, run_folders

CarryOut = Callable[..., Awaitable[list[Record]]]


@dataclass
class Probe:
    """A subject that does what the test says and remembers what it was asked."""

    do: Callable[[Task], Awaitable[Any]] | None = None
    needs: Needs = field(default_factory=Needs)
    asked: list[str] = field(default_factory=list)

    async def attempt(self, task: Task) -> Transcript:
        self.asked.append(task.case_id)
        answer = await self.do(task) if self.do else "yes"
        return answer if isinstance(answer, Transcript) else Transcript(output=answer)


@dataclass
class Judge:
    """A scorer that does what the test says."""

    do: Callable[[ScoreInput], Any]
    name: str = "judge"
    needs: Needs = field(default_factory=Needs)

    def __call__(self, given: ScoreInput) -> Any:
        return self.do(given)


def registry_of(probe: Probe, *judges: Judge) -> Registry:
    registry = default_registry().with_subject("probe", lambda _: probe)
    for judge in judges:
        registry = registry.with_scorer(judge.name, lambda _, judge=judge: judge)  # type: ignore[misc]
    return registry


def plan_of(cases: int = 1, *, rounds: int = 1, limits: Limits | None = None, **more: Any) -> Plan:
    usual: dict[str, Any] = {
        "subjects": (SubjectSpec(kind="probe", name="s"),),
        "scorers": (ScorerSpec(kind="exact"),),
    }
    asked = tuple(
        Case(id=f"c{number}", prompt="?", expected="yes", limits=limits or Limits()) for number in range(cases)
    )
    return Plan(name="p", cases=asked, rounds=rounds, **{**usual, **more})


def folder_of(tmp_path: Path) -> RunFolder:
    (folder,) = run_folders(tmp_path / "results")
    return folder


def end_reason(tmp_path: Path) -> str | None:
    marks = [entry for entry in folder_of(tmp_path).entries() if isinstance(entry, JournalMark)]
    return str(marks[-1].facts["reason"]) if marks[-1].kind == "end" else None


async def forever(_: Any) -> str:
    await asyncio.Event().wait()
    return "never"


@dataclass
class Shared:
    """A resource that writes down who opened and closed it, when."""

    key: str
    log: list[tuple[str, str, object]]
    refuse: bool = False

    def open(self) -> AbstractAsyncContextManager[str]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[str]:
            if self.refuse:
                raise InfraError(f"{self.key} does not open")
            self.log.append(("open", self.key, asyncio.current_task()))
            try:
                yield f"the {self.key}"
            finally:
                await asyncio.sleep(0)
                self.log.append(("close", self.key, asyncio.current_task()))

        return opened()


def check_closed(log: list[tuple[str, str, object]]) -> None:
    assert [entry[:2] for entry in log] == [("open", "a"), ("open", "b"), ("close", "b"), ("close", "a")]
    assert len({task for *_, task in log}) == 1


def sharing(log: list[tuple[str, str, object]], do: Callable[[Task], Awaitable[Any]] | None = None) -> Registry:
    a, again, b = Shared("a", log), Shared("a", log), Shared("b", log)
    judge = Judge(lambda given: given.resources["b"] == "the b", needs=Needs(resources=(again, b)))
    return registry_of(Probe(do, needs=Needs(resources=(a,))), judge)


JUDGED = (ScorerSpec(kind="judge"),)
