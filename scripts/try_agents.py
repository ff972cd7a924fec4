"""Try real agents on one exercise in each sandbox, and print what `docs/reference/agents.md` sums up.

They ask a provider on loopback that plays a script. Each runs without and with `--model`, is recorded, and then runs
once more with `--replay strict`, without a key. Agents that are not on PATH are left out.
Type `python -m scripts.try_agents`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tests.doors.agents.agent_parts import PARTS, Part, user_environment
from tests.doors.agents.small_tracks import DOUBLE, write_track
from tests.doors.agents.speaking_provider import INPUT, OUTPUT, SpeakingProvider

from bakeoff.record import Record
from bakeoff.storage.run_folder import RunFolder
from bakeoff.verdict import Verdict

SANDBOXES = ("bwrap", "process")
HEAD = ("agent", "version", "`--model`", "models asked", "tokens", "cost", "`bwrap`", "`process`")


@dataclass(frozen=True)
class Outcome:
    """One agent in one sandbox, recorded and replayed."""

    part: Part
    sandbox: str
    model: bool
    record: Record | None
    replayed: Record | None
    asked: tuple[str, ...] = ()
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Return whether it passed twice, with the tokens that the provider counted, or asked for a model at once."""
        if not self.record:
            return "add --model" in self.problem
        counted = (self.record.spent.input, self.record.spent.output)
        return (
            self.record.verdict is Verdict.PASS
            and counted == (INPUT * len(self.asked), OUTPUT * len(self.asked))
            and self.replayed is not None
            and self.replayed.verdict is Verdict.PASS
        )

    @property
    def cell(self) -> str:
        if not self.record:
            return f"refused: {self.problem}"
        if self.record.verdict is not Verdict.PASS:
            return f"{self.record.verdict}: {self.record.failure and self.record.failure.message}"
        if self.replayed is None or self.replayed.verdict is not Verdict.PASS:
            return f"pass, replay: {self.replayed and self.replayed.failure and self.replayed.failure.message}"
        return "pass, replay strict"

    @property
    def row(self) -> tuple[str, ...]:
        """Return what should be the same in every sandbox."""
        name = f"`{self.part.model}`" if self.model else "–"
        if not self.record:
            return (self.part.agent, "", name, "", "", "")
        about = (self.record.transcript.metadata if self.record.transcript else {}).get("agent")
        version = about.get("version") if isinstance(about, dict) else None
        spent = self.record.spent
        cost = "unknown" if spent.cost is None else f"${spent.cost:.6f}"
        asked = ", ".join(f"`{model}`" for model in dict.fromkeys(self.asked))
        return (self.part.agent, str(version or ""), name, asked, f"{spent.input} + {spent.output}", cost)


def try_agent(part: Part, sandbox: str, folder: Path, *, model: bool) -> Outcome:
    """Run an agent, then replay it from what was recorded."""
    with SpeakingProvider(part.turns(model=model)) as speaking:
        words = ["--agent", part.agent, "--provider", part.provider, "--sandbox", sandbox, "--timeout", "100"]
        words += ["--model", part.model] if model else []
        words += ["--exercises", str(write_track(folder / "track", double=DOUBLE)), "--recordings", "recordings"]
        record, problem = run_bakeoff([*words, "--replay", "record"], speaking, folder / "results", key=True)
        asked = tuple(speaking.models)
        replayed = None
        if record is not None:
            replayed, problem = run_bakeoff([*words, "--replay", "strict"], speaking, folder / "replayed", key=False)
            if len(speaking.models) > len(asked):
                replayed, problem = None, "the replay asked the provider"
    return Outcome(part, sandbox, model, record, replayed, asked, problem)


def run_bakeoff(
    words: Sequence[str], speaking: SpeakingProvider, results: Path, *, key: bool
) -> tuple[Record | None, str]:
    """Return the record of the one trial, or None, and the last line of stderr."""
    path = os.environ["PATH"]
    done = subprocess.run(
        [sys.executable, "-m", "bakeoff", "agents", "run", "--no-open", f"--results={results}", *words],
        cwd=results.parent,
        env=user_environment(speaking, path, key=key),
        capture_output=True,
        text=True,
        check=False,
    )
    runs = sorted((results / "runs").iterdir()) if (results / "runs").is_dir() else []
    records = [entry for run in runs for entry in RunFolder(run).entries() if isinstance(entry, Record)]
    return (records[-1] if records else None), (done.stderr.strip().splitlines() or [""])[-1]


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield Markdown: a row for each agent and model, and another where sandboxes differ in more than their result."""
    yield f"| {' | '.join(HEAD)} |"
    yield f"|{'---|' * len(HEAD)}"
    for row, same in groupby(outcomes, key=lambda outcome: outcome.row):
        cells = {outcome.sandbox: outcome.cell.replace("|", "\\|").replace("\n", " ") for outcome in same}
        yield f"| {' | '.join((*row, *(cells.get(name, '') for name in SANDBOXES)))} |"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--agent", action="append", help="only this one; may be repeated")
    asked.add_argument("--sandbox", action="append", choices=SANDBOXES, help="only this one")
    given = asked.parse_args()
    parts = [part for part in PARTS if shutil.which(part.agent) and (not given.agent or part.agent in given.agent)]
    outcomes = []
    for part in parts:
        for model in (False, True):
            for sandbox in given.sandbox or SANDBOXES:
                with tempfile.TemporaryDirectory(prefix="bakeoff-agents-") as folder:
                    outcomes.append(try_agent(part, sandbox, Path(folder), model=model))
                told = outcomes[-1]
                about = "; ".join(filter(None, (*told.row[1:], told.cell)))
                print(f"{'✓' if told.ok else '✗'} {part.agent} {sandbox}: {about}", file=sys.stderr)
    print("\n".join(table(outcomes)))
    missing = sorted({part.agent for part in PARTS if not shutil.which(part.agent)})
    if missing and not given.agent:
        print(f"not on PATH: {', '.join(missing)}", file=sys.stderr)
    sys.exit(0 if all(outcome.ok for outcome in outcomes) else 1)


if __name__ == "__main__":
    main()
