"""Search for regular expressions without blocking other trials.

Some regular expressions with repetitions take exponential time on an unlucky text, and `re` blocks all threads
meanwhile and cannot be stopped. Such patterns are searched with the `regex` library, which has a time limit.
"""

import asyncio
import re
from functools import lru_cache
from typing import Any

from bakeoff._kernel.threads import call
from bakeoff.errors import GraderError

_REPETITIONS = frozenset("*+{")
_FLAGS = ("IGNORECASE", "MULTILINE", "DOTALL", "VERBOSE", "ASCII")
# `regex` reads `{e}` as "allow errors"; `re` takes every brace that is not a repetition literally.
_BRACE = re.compile(r"\\N\{[^}]*\}|\\.|\{(?!\d+(?:,\d*)?\}|,\d*\})", re.DOTALL)


def search(pattern: re.Pattern[str], text: str, seconds: float) -> bool:
    """Return True if the pattern is found in the text. Raises TimeoutError when the search takes too long."""
    if not _REPETITIONS & set(pattern.pattern):
        return pattern.search(text) is not None
    return _compiled(pattern).search(text, timeout=seconds, concurrent=True) is not None


async def is_found(pattern: re.Pattern[str], text: str, seconds: float) -> bool | None:
    """Search as `search` does, without blocking the event loop; return None if the search takes too long."""
    if not _REPETITIONS & set(pattern.pattern):
        return pattern.search(text) is not None
    try:
        async with asyncio.timeout(seconds):  # the library looks at its own limit too seldom on some texts
            found: bool = await call(search, pattern, text, seconds)
    except TimeoutError:
        return None
    return found


@lru_cache(maxsize=256)
def _compiled(pattern: re.Pattern[str]) -> Any:
    import regex  # slow to import, and most suites have no such patterns

    flags = sum(int(regex.RegexFlag[name]) for name in _FLAGS if pattern.flags & re.RegexFlag[name])
    source = _BRACE.sub(lambda found: r"\{" if found[0] == "{" else found[0], pattern.pattern)
    try:
        return regex.compile(source, flags | regex.VERSION0)
    except regex.error as error:
        raise GraderError(
            f"pattern {pattern.pattern!r} cannot be searched for: {error}; write it differently"
        ) from error
