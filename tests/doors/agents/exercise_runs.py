"""Run small tracks through the public run: plans, records and what scores say."""

from pathlib import Path
from typing import Any

from bakeoff.doors import door_of
from bakeoff.doors.agents.exercises import find_exercises
from bakeoff.doors.agents.plan import ExercisesRequest, build_plan
from bakeoff.engine.run import run
from bakeoff.grading.cases import GradedCase
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Grading, Plan
from bakeoff.record import Record

from .small_tracks import RIGHT_DOUBLE, agent_file, overwrite

SOLVE = overwrite("double.py", RIGHT_DOUBLE)

CANARY = "sk-canary-0a1b2c3d4e5f6071"


def planned(root: Path, *agents: str, **asked: Any) -> Plan:
    request = ExercisesRequest.model_validate({"exercises": root, "agents": agents, "timeout": 20.0, **asked})
    return build_plan(request, find_exercises(root, request.wanted).exercises)


async def carried_out(plan: Plan, folder: Path, **options: Any) -> dict[tuple[str, str], Record]:
    chosen = RunOptions(**{"results": folder / "results", "jobs": 2, "retries": 0, **options})
    registry = door_of(plan).registry(plan, chosen)
    records = [record async for record in run(plan, chosen, registry=registry)]
    return {(record.case, record.subject): record for record in records}


async def tried(root: Path, script: str, **asked: Any) -> Record:
    """Return what becomes of one script in the exercise `double`."""
    about = {key: asked.pop(key) for key in ("env", "require", "home", "version") if key in asked}
    options = asked.pop("options", {})
    file = agent_file(root.parent, "scripted-agent", script, **about)
    plan = planned(root, "scripted-agent", agent_files=[file], wanted=["double"], **asked)
    [record] = (await carried_out(plan, root.parent, **options)).values()
    return record


def outcome(record: Record) -> dict[str, Any]:
    (score,) = record.scores
    found = score.metadata.get("exercise")
    assert isinstance(found, dict), score.failure
    return found


def said(record: Record) -> str:
    assert record.transcript is not None, record.failure
    return str(record.transcript.output)


def typescript_case(files: dict[str, str], *solution: str) -> GradedCase:
    settings = Grading(runner="jest", solution=solution, tests=("a.test.ts",), seconds=60.0, track="typescript")
    return GradedCase(Case(id="a", prompt="", files=files), settings)
