"""The pytest door: connects evals to the commands that serve all doors."""

from typing import TYPE_CHECKING, NoReturn

from bakeoff.doors import Door
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.options import RunOptions
    from bakeoff.plan import Plan


class PytestDoor(Door):
    """The evals of a pytest session. Commands show them like any run; only pytest can run them again."""

    def registry(self, plan: "Plan", options: "RunOptions") -> NoReturn:  # noqa: ARG002 - the signature of a door
        """Raise UsageError, because the tasks and scorers of evals are code of a project that no plan contains."""
        raise UsageError(
            f"plan {plan.name!r} holds evals of pytest, whose tasks and scorers are functions of a project: "
            "run pytest there to run them again (`pytest --lf` for those that failed)"
        )
