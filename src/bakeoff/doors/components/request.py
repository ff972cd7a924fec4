"""The request of `bakeoff run`, from flags or from the answers to its questions."""

from pathlib import Path

from pydantic import Field, JsonValue, PositiveInt

from bakeoff._kernel.model import FrozenModel

JOINED = " + "
"""Stands between the servers of one value of --mcp."""


PICTURES = "pictures"
"""The key in a plan's settings that asks for pictures."""


class ComponentsRequest(FrozenModel):
    """Which suites, models and servers to use, and how to ask the models. Options of the run itself are not in it."""

    suites: Path | None = Field(default=None, description="None: `tests/` if it has suites, or else the bundled ones")
    only: tuple[str, ...] = Field(default=(), description="names of suites; all if empty")
    models: tuple[str, ...] = ()
    mcp: tuple[str, ...] = Field(default=("none",), description="each value is `none`, or servers joined by ` + `")
    treatments: tuple[str, ...] = Field(default=(), description="NAME=PATH: texts for the system prompt")
    test_tool: bool = True
    pricing: bool = True
    hide_tests: bool = False
    hidden_tests: float = Field(default=0.0, ge=0, lt=1, description="the share of tests that models do not see")
    hidden_seed: int = Field(default=0, description="decides which tests are hidden")
    rounds: PositiveInt = 1
    max_steps: PositiveInt | None = None  # 10, and fewer for a model on this machine
    temperature: float | None = Field(default=None, ge=0)
    seed: int | None = None
    max_tokens: PositiveInt | None = None
    pictures: bool = Field(default=False, description="take a picture of each component after grading")

    def settings(self) -> dict[str, JsonValue]:
        """Return what a plan keeps of the request besides its cases and subjects."""
        usual: dict[str, JsonValue] = {
            "test_tool": self.test_tool,
            "pricing": self.pricing,
            "hide_tests": self.hide_tests,
        }
        return {**usual, PICTURES: True} if self.pictures else usual


def command_line(request: ComponentsRequest, *, jobs: int | None = None) -> list[str]:
    """Return the command that makes the same request. Options with their default are left out."""
    usual = ComponentsRequest()
    words = ["bakeoff", "run"]
    if request.suites is not None:
        words += ["--suites", str(request.suites)]
    words += _repeated("--suite", request.only)
    words += _repeated("--model", request.models)
    if request.mcp != usual.mcp:
        words += _repeated("--mcp", request.mcp)
    words += _repeated("--with", request.treatments)
    words += [] if request.test_tool else ["--no-test-tool"]
    words += [] if request.pricing else ["--no-pricing"]
    words += ["--hide-tests"] if request.hide_tests else []
    words += ["--pictures"] if request.pictures else []
    for flag in ("hidden_tests", "hidden_seed", "rounds", "max_steps", "temperature", "seed", "max_tokens"):
        value = getattr(request, flag)
        if value != getattr(usual, flag):
            words += [f"--{flag.replace('_', '-')}", str(value)]
    return words if jobs is None else [*words, "--jobs", str(jobs)]


def _repeated(flag: str, values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in (flag, value)]
