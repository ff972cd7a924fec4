"""What `bakeoff agents run` was asked for. The run's own options stand beside it."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue, PositiveInt

from bakeoff._kernel.model import FrozenModel
from bakeoff.plan import HIDDEN

Seconds = Annotated[float, Field(gt=0, le=604_800.0)]  # a week


class ExercisesRequest(FrozenModel):
    """Which exercises, agents and models, and how the agents are asked."""

    exercises: Path | None = Field(default=None, description="a track, or one exercise; None: the bundled ones")
    wanted: tuple[str, ...] = Field(default=(), description="names, names with commas, or a number; usual if empty")
    agents: tuple[str, ...] = ()
    models: tuple[str, ...] = Field(default=(), description="an axis; empty: each agent's own")
    providers: tuple[str, ...] = Field(default=(), description="an axis; empty: each agent's own")
    agent_files: tuple[Path, ...] = ()
    rounds: PositiveInt = 1
    timeout: Seconds = 300.0
    test_timeout: Seconds = 60.0
    test_command: str | None = None
    unskip: bool = Field(default=True, description="run the tests that a track skips, too")
    test_only: bool = False
    custom_instruction: str | None = None
    use_login: bool = False
    network: bool = False
    show_progress: bool = False

    def settings(self) -> dict[str, JsonValue]:
        """What a plan remembers of it: all but what its cases and subjects say already."""
        hidden: list[JsonValue] = [str(_checkout(self.exercises.resolve()))] if self.exercises else []
        return {"show_progress": self.show_progress, **({HIDDEN: hidden} if hidden else {})}


def _checkout(folder: Path) -> Path:
    """The whole track that a folder is a part of: the examples of one exercise are in its history as well."""
    for part in (folder, folder.parent):  # all exercises, or one of them
        track = part.parent.parent
        if part.parts[-2:] == ("exercises", "practice") and (track / "config.json").is_file():
            return track
    return folder
