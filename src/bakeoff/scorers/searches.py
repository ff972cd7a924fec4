"""Searching a model's text for patterns in a process that can be killed, many searches to one process.

Some patterns with repetitions take forever on a text that is made for it, and `re` lets nothing else run meanwhile.
"""

import json
import re
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from types import TracebackType
from typing import Self, TypeAlias, TypeVar

Result = TypeVar("Result")

_SEARCH_SECONDS = 5.0

# The system ends a search that takes too long, whatever has become of the process that asked for it.
_SEARCHER = """
import json, re, signal, sys
for line in sys.stdin:
    pattern, flags, text, seconds = json.loads(line)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    found = re.search(pattern, text, flags) is not None
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(int(found), flush=True)
"""


Search: TypeAlias = tuple[str, int, str]
"""A pattern, its flags, and the text to look in."""

_PASSES = 3  # in which searches are gathered; what is wanted after that is rare, and done one by one
_BATCH = 1000  # searches asked for at once: their answers fit into the pipe


@dataclass(slots=True)
class Searches:
    """Searches for patterns; a pattern that once took too long is not tried again."""

    seconds: float = _SEARCH_SECONDS
    slow: set[str] = field(default_factory=set)  # patterns that were given up
    _known: dict[Search, bool] = field(default_factory=dict)
    _wanted: dict[Search, None] | None = None  # while they are gathered
    _process: subprocess.Popen[str] | None = None

    def found(self, pattern: re.Pattern[str], text: str) -> bool:
        if not set(pattern.pattern) & set("*+{"):
            return pattern.search(text) is not None
        search = (pattern.pattern, pattern.flags, text)
        if search not in self._known:
            if self._wanted is not None:
                self._wanted[search] = None
                return False
            self._do([search])
        return self._known[search]

    def done_together(self, compute: Callable[[], Result]) -> Result:
        """What is computed from many searches. It is computed more than once, to do them together."""
        for _ in range(_PASSES):
            self._wanted = {}
            try:
                result = compute()
                wanted = list(self._wanted)
            finally:
                self._wanted = None
            if not wanted:
                return result
            self._do(wanted)
        return compute()

    def _do(self, searches: list[Search]) -> None:
        waiting = deque(searches)
        while waiting:
            batch = [waiting.popleft() for _ in range(min(_BATCH, len(waiting)))]
            asked = [search for search in batch if search[0] not in self.slow]
            answers = self._answers(asked) if asked else []
            self._known |= dict.fromkeys(batch, False) | dict(zip(asked, answers, strict=False))
            if len(answers) < len(asked):  # the process ended over the first that has no answer
                self.slow.add(asked[len(answers)][0])
                waiting.extendleft(reversed(asked[len(answers) + 1 :]))

    def _answers(self, searches: list[Search]) -> list[bool]:
        """As many as came before the process was ended, all if it was not."""
        process = self._process = self._process or _start()
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):  # ended while it was still being asked
            process.stdin.writelines(json.dumps([*search, self.seconds]) + "\n" for search in searches)
            process.stdin.flush()
        answers = [line.strip() == "1" for line in islice(process.stdout, len(searches))]
        if len(answers) < len(searches):
            self.close()
        return answers

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            with suppress(BrokenPipeError), self._process:  # closes its pipes and waits for it
                pass
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _start() -> subprocess.Popen[str]:
    argv = (sys.executable, "-I", "-S", "-c", _SEARCHER)
    quiet = subprocess.DEVNULL
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, encoding="utf-8")
