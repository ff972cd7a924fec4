"""What a plan of this door remembers, so that a run can be taken up again, rescored and shown without its file."""

from functools import cached_property
from pathlib import Path

from pydantic import Field, JsonValue, ValidationError

from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff.doors.mcp_suite.config import SuiteConfig, read_suite
from bakeoff.doors.mcp_suite.find import suite_environment
from bakeoff.doors.mcp_suite.servers import confided, has_seals
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerTool
from bakeoff.plan import Plan


class Evaluation(FrozenModel):
    """A suite as it is carried out: filtered, without secrets, and with the tools that its servers offered."""

    config: SuiteConfig
    file: str
    report: str
    tools: tuple[ServerTool, ...] = ()
    warnings: tuple[str, ...] = Field(default=(), description="what its user should know before believing the numbers")
    sequences: bool = Field(
        default=False,
        description="some case of the file takes several calls: only then are models told how to ask for these",
    )

    @property
    def folder(self) -> Path:
        return Path(self.file).parent

    @cached_property
    def tools_hash(self) -> str:
        return fingerprint([tool.model_dump(mode="json") for tool in self.tools])

    @property
    def executes(self) -> bool:
        """Whether tools are really called after a reply; agents call them by themselves."""
        asked = any(case.expectedResults is not None for case in self.config.testCases)
        return asked or self.config.executeTools or self.grades

    @property
    def grades(self) -> bool:
        config = self.config
        return config.gradingPrompt is not None or any(case.gradingPrompt for case in config.testCases)

    def environment(self) -> dict[str, str]:
        """All variables, and what the file tells its servers in confidence, which is read from it each time."""
        found = suite_environment(self.folder)
        if not has_seals(self.config):
            return found
        return {**found, **confided(read_suite(Path(self.file), found).config, found)}

    def as_settings(self) -> dict[str, JsonValue]:
        return self.model_dump(mode="json")


def evaluation_of(plan: Plan) -> Evaluation:
    try:
        return Evaluation.model_validate(plan.settings)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"plan {plan.name!r} was not made by `bakeoff mcp`: {place}: {first['msg']}") from error
