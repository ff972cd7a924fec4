"""Where text goes: results to stdout, everything about the doing to stderr. No colour and no bars when piped."""

from rich.console import Console


def out() -> Console:
    console = Console(highlight=False, markup=False, emoji=False)
    # A pipe has no width; a table folded to 80 columns would be of no use to the program that reads it.
    return console if console.is_terminal else Console(highlight=False, markup=False, emoji=False, width=160)


def err() -> Console:
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
