"""Where text goes: results to stdout, everything about the doing to stderr. No colour and no bars when piped."""

import codecs
import io
import sys

from rich.console import Console

_PLAINER = dict(zip("▁▂▃▄▅▆▇█░–−×·…", "_.-:=+*#.--x*~", strict=True))


def out() -> Console:
    _never_refuse(sys.stdout)
    console = Console(highlight=False, markup=False, emoji=False)
    # A pipe has no width; a table folded to 80 columns would be of no use to the program that reads it.
    return console if console.is_terminal else Console(highlight=False, markup=False, emoji=False, width=160)


def err() -> Console:
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def tell_of_damage(lines: int, name: str) -> None:
    """What no number has in it is said beside the numbers."""
    if lines:
        err().print(f"{lines:,} damaged lines are left out; `bakeoff runs check {name}` names them", markup=False)


def _never_refuse(stream: object) -> None:
    """Where an encoding has no bars or dashes, plainer signs stand for them; columns stay as wide as they were."""
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error("plainer", _plainer)
        stream.reconfigure(errors="plainer")


def _plainer(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_PLAINER.get(char) or ascii(char)[1:-1] for char in missing), error.end
