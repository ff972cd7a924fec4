"""A real terminal to drive programs in: what they draw is read as text, and keys are sent when a question is there."""

import codecs
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path
from typing import Any

CTRL_C, CTRL_D, CTRL_L, CTRL_U, ESC = "\x03", "\x04", "\x0c", "\x15", "\x1b"
ENTER, TAB, UP, DOWN = "\r", "\t", "\x1b[A", "\x1b[B"

_PATIENCE_SECONDS = 60.0  # after which a question is held to be missing; a busy machine is slow
_CODES = re.compile(r"\x1b(?:\[[0-9;?=>]*[A-Za-z]|\][^\x07]*\x07|[=>()][0-9A-Z]?)")
# A program asks where the cursor is, to know how many lines it has, and a terminal has to say.
_WHERE, _HERE = b"\x1b[6n", b"\x1b[1;1R"
# Makes the terminal that is its input the one that Ctrl-C comes from, as a shell does.
_BEGIN = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


class Terminal:
    """A program in a terminal of its own."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str], columns: int = 100, rows: int = 40
    ) -> None:
        self._ours, self._theirs = os.openpty()
        ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.settings: list[Any] = termios.tcgetattr(self._theirs)
        self.text = ""  # all that was shown so far, without the codes that move the cursor
        self._raw = b""
        self._held = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._seen = 0
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BEGIN, *command],
            cwd=folder,
            env={**environment, "TERM": "xterm"},
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
        )

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def answer(self, question: str, *keys: str) -> None:
        """Wait for a question, and press keys; what is awaited next must come after it."""
        self.sees(question)
        for key in keys:
            os.write(self._ours, key.encode())

    def sees(self, text: str) -> None:
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while (found := self.text.find(text, self._seen)) < 0:
            alive = self._process.poll() is None
            if not self._read(0.2) and (not alive or time.monotonic() > give_up):
                raise AssertionError(f"{text!r} was not shown after:\n{self.text[self._seen :]}")
        self._seen = found + len(text)

    def ends(self) -> int:
        """The exit code."""
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while self._process.poll() is None:
            self._read(0.2)
            if time.monotonic() > give_up:
                raise AssertionError(f"it is still running, after:\n{self.text[self._seen :]}")
        while self._read(0):
            pass
        return self._process.wait()

    @property
    def is_as_before(self) -> bool:
        """Tell whether the terminal echoes, buffers lines and makes signals as it did at first, and has its cursor."""
        hidden, shown = self._raw.rfind(b"\x1b[?25l"), self._raw.rfind(b"\x1b[?25h")
        return termios.tcgetattr(self._theirs) == self.settings and hidden <= shown

    def _read(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], seconds)[0]:
            return False
        new = os.read(self._ours, 65536)
        for _ in range(new.count(_WHERE)):
            os.write(self._ours, _HERE)
        self._raw += new
        drawn = self._held + self._decoder.decode(new)
        last = drawn.rfind("\x1b")
        whole = len(drawn) if last < 0 or _CODES.match(drawn, last) else last  # a code may come in two pieces
        self._held = drawn[whole:]
        self.text += _CODES.sub("", drawn[:whole]).replace("\r", "")
        return True
