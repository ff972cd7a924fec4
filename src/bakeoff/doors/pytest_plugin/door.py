"""The pytest door: what the commands that serve all doors ask of it."""

from typing import TYPE_CHECKING, NoReturn

from bakeoff.doors import Door
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.options import RunOptions
    from bakeoff.plan import Plan


class PytestDoor(Door):
    """Evals of a session of pytest. They are shown like any run, and run again by pytest alone."""

    def registry(self, plan: "Plan", options: "RunOptions") -> NoReturn:  # noqa: ARG002 - the shape of a door
        raise UsageError(
            f"plan {plan.name!r} holds evals, whose tasks and scorers are functions of a project: "
            "run pytest there to carry them out again (`pytest --lf` for those that failed)"
        )
