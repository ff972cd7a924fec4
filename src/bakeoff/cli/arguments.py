"""Options that several commands have, each said once. Imports nothing but typer: start-up must stay fast."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bakeoff._kernel.choices import ReplayMode
else:
    ReplayMode = str  # any text: RunOptions refuses a wrong mode in its own words

Results = Annotated[Path, typer.Option(help="Where runs are kept.")]
RunName = Annotated[str, typer.Argument(help="A run's folder, its name, or `latest`.")]
Jobs = Annotated[int, typer.Option(min=1, help="Trials in flight at one time.")]
Sandbox = Annotated[str, typer.Option(help="auto, process, bwrap or docker.")]
Refresh = Annotated[bool, typer.Option("--refresh", help="Fetch the AI Gateway's list of models anew.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown instead of a table.")]
HtmlFile = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page that needs no network.")]
MaxCost = Annotated[float | None, typer.Option(help="Stop starting trials at this many USD.")]
MaxTokens = Annotated[int | None, typer.Option(help="Stop starting trials at this many tokens.")]
MaxSeconds = Annotated[float | None, typer.Option(help="Stop starting trials after this long.")]
FailUnder = Annotated[float | None, typer.Option(min=0, max=1, help="Succeed when every score is at least this.")]
Replay = Annotated[
    ReplayMode, typer.Option(envvar="BAKEOFF_REPLAY", help="Of model calls: off, auto, record or strict.")
]
Recordings = Annotated[Path, typer.Option(envvar="BAKEOFF_RECORDINGS", help="Where recorded model calls are kept.")]
Trace = Annotated[bool, typer.Option("--trace", help="Send OpenTelemetry spans (extra `otel`).")]
KeepWorkspaces = Annotated[bool, typer.Option("--keep-workspaces", help="Leave each trial's folder to be looked at.")]
JunitFile = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Also write JUnit XML.")]
MarkdownFile = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Also write Markdown, for a pull request.")
]
GitHub = Annotated[bool, typer.Option("--github", help="Also write GitHub's annotations and step summary.")]
NoOpen = Annotated[bool, typer.Option("--no-open", help="Do not open the browser.")]
ExitZero = Annotated[bool, typer.Option("--exit-zero", help="Exit 0 even if something failed.")]
