"""Store the run of a command-line agent (end, output and changes) in its transcript."""

from collections.abc import Sequence

from pydantic import ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff.record import OPENED, Step, Text, Transcript

AGENT = "agent"
"""The key of the `AgentRun` in a transcript's metadata."""

MAX_OUTPUT_LENGTH = 8000
"""The number of characters that are kept of an agent's stdout, and of its stderr."""

_CHANGED, _STDOUT, _STDERR = "changed", "printed", "printed to stderr"


class AgentRun(FrozenModel):
    """The run of an agent, as stored in a record."""

    exit_code: int = 0
    stop: str = "exited"
    exceeded: str = ""  # the limit that ended it, in words; "" for none or time
    seconds: float = 0.0
    limit: float = 0.0
    tries: int = 1  # number of tries used
    tests_said: str = ""  # messages of failed tests, if there was another try
    version: str | None = None
    metered: bool = False
    stdout: str = ""
    stderr: str = ""
    last_words: str = ""  # the line of output that explains a failure
    touched: tuple[str, ...] = ()
    opened: tuple[str, ...] | None = None  # opened files of a treatment; None if unknown
    refused: dict[str, str] = {}
    patch: str = ""
    attack: str | None = None  # its description, if the subject is a cheat


def agent_run_in(transcript: Transcript) -> AgentRun:
    """Return the agent's run. Subjects that are not commands count as successful."""
    try:
        return AgentRun.model_validate(transcript.metadata.get(AGENT) or {})
    except ValidationError:  # not written by this module
        return AgentRun()


def joined(runs: Sequence[AgentRun]) -> AgentRun:
    """Combine several tries into one run, with the end of the last and all changes."""
    if len(runs) == 1:
        return runs[0]
    opened = [run.opened for run in runs if run.opened is not None]
    told = [
        f"(try {number})\n{run.stdout}" + (f"\n(the tests of try {number})\n{run.tests_said}" if run.tests_said else "")
        for number, run in enumerate(runs, 1)
    ]
    return runs[-1].model_copy(
        update={
            "tries": len(runs),
            "seconds": round(sum(run.seconds for run in runs), 3),
            "opened": tuple(sorted({name for names in opened for name in names})) if opened else None,
            "stdout": "\n".join(told)[-MAX_OUTPUT_LENGTH:],
        }
    )


def with_run(transcript: Transcript, run: AgentRun) -> Transcript:
    """Return the transcript with the agent's output and changes as its last step."""
    kept = run.model_dump(mode="json", exclude_defaults=True, exclude={"stdout", "stderr", "patch", "opened"})
    said = [(_STDOUT, run.stdout), (_STDERR, run.stderr), (_CHANGED, run.patch)]
    parts = tuple(Text(text=f"{what}:\n{text}") for what, text in said if text.strip())
    steps = (*transcript.steps, Step(parts=parts, seconds=run.seconds)) if parts else transcript.steps
    opened = {} if run.opened is None else {OPENED: list(run.opened)}
    return transcript.model_copy(update={"steps": steps, "metadata": {**transcript.metadata, AGENT: kept, **opened}})


def patch_in(transcript: Transcript) -> str:
    """Return the agent's changes from the last step."""
    return _text_in(transcript, _CHANGED)


def stderr_in(transcript: Transcript) -> str:
    """Return the agent's stderr from the last step."""
    return _text_in(transcript, _STDERR)


def _text_in(transcript: Transcript, what: str) -> str:
    last = transcript.steps[-1].parts if transcript.steps else ()
    head = f"{what}:\n"
    texts = [part.text for part in last if isinstance(part, Text) and part.text.startswith(head)]
    return texts[-1].removeprefix(head) if texts else ""
