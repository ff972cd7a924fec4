"""Ask a judge again about answers that have a label."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from bakeoff._kernel.threads import call
from bakeoff.engine.registry import needs_of
from bakeoff.engine.resources import open_resources
from bakeoff.engine.trial import as_score
from bakeoff.errors import GraderError
from bakeoff.plan import Plan
from bakeoff.protocols import ModelJudge, ScoreInput, Scorer, Workspace
from bakeoff.record import NO_USAGE, Record, Transcript, Usage
from bakeoff.report.judges.calibration import repeated_scores

_AT_A_TIME = 8  # questions to a judge


async def ask_again(
    judge: Scorer, scorer: str, plan: Plan, records: Sequence[Record], times: int
) -> tuple[dict[str, Sequence[float]], Usage]:
    """Ask a judge several times about the answers of records. Nothing in the run changes.

    Args:
        judge: The judge. One that asks a model asks it `times` times for each score by itself.
        scorer: The name of its scores.
        plan: The plan of the run.
        records: The records of the answers.
        times: How often to ask about each answer.

    Returns:
        The scores by attempt key, and what asking cost.
    """
    asked = 1 if isinstance(judge, ModelJudge) else times
    cases = {case.id: case for case in plan.cases}
    spent: list[Usage] = []
    limit = asyncio.Semaphore(_AT_A_TIME)
    async with open_resources(needs_of(judge).resources) as resources:

        async def scores_of(record: Record) -> list[float]:
            given = ScoreInput(
                case=cases[record.case],
                transcript=record.transcript or Transcript(),
                artefacts=record.artefacts,
                pristine=_no_workspace,
                resources=resources,
                spend=spent.append,
            )
            values: list[float] = []
            async with limit:
                for _ in range(asked):
                    score = as_score(scorer, await call(judge, given))
                    values += repeated_scores(score) or ([] if score.value is None else [score.value])
            return values

        found_scores = await asyncio.gather(*map(scores_of, records))
    scores_by_key: dict[str, Sequence[float]] = {
        record.attempt_key: scores for record, scores in zip(records, found_scores, strict=True)
    }
    return scores_by_key, sum(spent, NO_USAGE)


def _no_workspace() -> AbstractAsyncContextManager[Workspace]:
    raise GraderError("--repeat asks judges that read an answer, not scorers that run commands")
