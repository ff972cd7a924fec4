"""The request of `bakeoff agents run`, without the options of the run itself."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue, PositiveInt

from bakeoff._kernel.git import commit_of
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import visible
from bakeoff._version import __version__
from bakeoff.plan import HIDDEN, ORIGIN
from bakeoff.toolchains.tracks import TRACKS

Seconds = Annotated[float, Field(gt=0, le=604_800.0)]  # a week


class ExercisesRequest(FrozenModel):
    """Which exercises, agents and models to use, and how to ask the agents."""

    exercises: Path | None = Field(default=None, description="a track, or one exercise; None: the bundled ones")
    wanted: tuple[str, ...] = Field(
        default=(), description="names, names with commas, or a number; the default selection if empty"
    )
    agents: tuple[str, ...] = ()
    models: tuple[str, ...] = Field(default=(), description="one subject for each; empty: each agent's default")
    providers: tuple[str, ...] = Field(default=(), description="one subject for each; empty: each agent's default")
    agent_files: tuple[Path, ...] = ()
    treatments: tuple[str, ...] = Field(default=(), description="NAME=DIR: files that are laid over the workspace")
    rounds: PositiveInt = 1
    timeout: Seconds = 300.0
    tries: int = Field(default=1, ge=1, le=5, description="tries at an exercise; a later one sees what the tests said")
    test_timeout: Seconds = 60.0
    test_command: str | None = None
    type_check: bool = Field(default=True, description="type errors fail an answer in TypeScript")
    hidden_tests: float = Field(default=0.0, ge=0, lt=1, description="the share of tests that agents do not see")
    hidden_seed: int = Field(default=0, description="decides which tests are hidden")
    unskip: bool = Field(default=True, description="also run the tests that a track skips")
    test_only: bool = False
    custom_instruction: str | None = None
    use_login: bool = False
    network: bool = False
    show_progress: bool = False

    def settings(self) -> dict[str, JsonValue]:
        """Return what a plan keeps of the request besides its cases and subjects."""
        hidden: list[JsonValue] = [str(_checkout(self.exercises.resolve()))] if self.exercises else []
        return {"show_progress": self.show_progress, ORIGIN: self._origin(), **({HIDDEN: hidden} if hidden else {})}

    def _origin(self) -> dict[str, JsonValue]:
        if self.exercises is None:
            return {"checkout": "bundled", "commit": f"bakeoff {__version__}"}
        checkout = _checkout(self.exercises.resolve())
        return {"checkout": visible(checkout.name), "commit": commit_of(checkout)}


def _checkout(folder: Path) -> Path:
    """Return the whole track that a folder belongs to: its history also holds the examples."""
    for part in (folder, folder.parent):  # all exercises, or one of them
        track = part.parent.parent
        if part.parts[-2:] == ("exercises", "practice") and ((track / "config.json").is_file() or track.name in TRACKS):
            return track
    return folder
