"""What `bakeoff mcp evaluate` was asked for, however it was asked: by flags, or by a call from Python."""

from pathlib import Path

from pydantic import Field, PositiveInt

from bakeoff._kernel.model import FrozenModel

REPORT_FOLDER = Path("mcp-report")


class EvaluationRequest(FrozenModel):
    """Which configuration, and which part of it. What is filtered out is no failure: it is not there."""

    path: Path | None = Field(default=None, description="None: the nearest configuration here or above")
    prompts: tuple[str, ...] = Field(default=(), description="texts that prompts hold; all where empty")
    models: tuple[str, ...] = Field(default=(), description="of modelsToTest; all where empty")
    cases: tuple[str, ...] = Field(default=(), description="names, numbers from 1, or tags; all where empty")
    rounds: PositiveInt | None = Field(default=None, description="instead of testRound")
    jobs: PositiveInt | None = Field(default=None, description="instead of concurrencyLimit")
    report: Path = REPORT_FOLDER
