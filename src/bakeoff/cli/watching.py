"""Share what `bakeoff eval --watch` and `bakeoff mcp evaluate --watch` need between their cycles."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from bakeoff.cli.flags import EndingFlags, PlanFlags, SelectionFlags
from bakeoff.cli.run_plan import CheckedPlan, EndedRun, run_checked
from bakeoff.engine.watch import remaining_limits
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.models.embedded import EmbeddedServer
from bakeoff.models.providers import parse_model_name
from bakeoff.options import RunOptions
from bakeoff.record import NO_USAGE, Usage
from bakeoff.storage.run_folder import RunFolder


@dataclass(slots=True)
class WatchSession:
    """The event loop of all cycles, the embedded models that stay loaded, and what the cycles have spent."""

    ending: EndingFlags
    runner: asyncio.Runner
    _spent: Usage = NO_USAGE
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _loaded: set[str] = field(default_factory=set)

    def keep_loaded(self, names: Sequence[str]) -> None:
        """Load the embedded models among these, and keep them until the watch ends."""
        for name in map(parse_model_name, names):
            if name.provider == "local" and name.model not in self._loaded:
                self._loaded.add(name.model)
                with suppress(BakeoffError):  # the cycle reports it
                    self.runner.run(self._stack.enter_async_context(EmbeddedServer(name.model).open()))

    def limited(self, options: RunOptions) -> RunOptions:
        """Return options with what earlier cycles have left of the limits."""
        return remaining_limits(options, self._spent)

    def run(self, checked: CheckedPlan, folder: RunFolder) -> EndedRun:
        """Run what is left of a plan."""
        ended = run_checked(checked, self.ending, folder=folder, runner=self.runner)
        self._spent += ended.run.folder.spent()
        return ended

    def close(self) -> None:
        self.runner.run(self._stack.aclose())


@contextmanager
def open_watch(flags: PlanFlags, selection: SelectionFlags, ending: EndingFlags) -> Iterator[WatchSession]:
    """Open what cycles share. Raise UsageError for options that are for one run only."""
    refused = {"--json": ending.as_json, "--junit": ending.junit, "--markdown": ending.markdown}
    refused |= {"--github": ending.github, "--dry-run": flags.dry_run, "--until-decided": selection.until_decided}
    if names := [name for name, given in refused.items() if given]:
        raise UsageError(f"{names[0]} is for one run, and --watch makes many: leave one of them out")
    with asyncio.Runner() as runner:
        session = WatchSession(ending, runner)
        try:
            yield session
        finally:
            session.close()
