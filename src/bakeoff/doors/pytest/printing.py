"""Separate the output and logs of each case, and give them to pytest with the test of the case.

Cases run side by side while pytest reports them one by one, and between two tests pytest captures
nothing. So each case writes into its own buffer, which pytest gets when it reaches the case. A
context variable holds the buffer. Tasks and `asyncio.to_thread` inherit the variable; threads that
a case starts by other means do not.
"""

import logging
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

import pytest

_STREAMS = ("stdout", "stderr")
_KEY = pytest.StashKey["CasePrinting"]()


@dataclass(slots=True, eq=False)
class CapturedOutput:
    """The lines that one case has printed and logged so far."""

    texts: list[tuple[str, str]] = field(default_factory=list)  # with the name of the stream
    logged: list[logging.LogRecord] = field(default_factory=list)


_PRINTED: ContextVar[CapturedOutput | None] = ContextVar("_PRINTED", default=None)


@contextmanager
def printing_to(printed: CapturedOutput | None) -> Generator[None]:
    """Collect output and logs of the block in `printed`; None leaves them to pytest."""
    token = _PRINTED.set(printed)
    try:
        yield
    finally:
        _PRINTED.reset(token)


def printing_of(config: pytest.Config) -> "CasePrinting":
    """Return the output routing of this process, which is created on first use."""
    found = config.stash.get(_KEY, None)
    if found is None:
        found = config.stash[_KEY] = CasePrinting(config)
        config.pluginmanager.register(found, "bakeoff-printing")
        config.add_cleanup(found.close)
    return found


class CasePrinting:
    """The routing of cases' output to their buffers. With `-s`, output is printed at once."""

    def __init__(self, config: pytest.Config) -> None:
        self.routes = config.getoption("capture", "no") != "no" and config.pluginmanager.hasplugin("capturemanager")
        self._streams: WeakSet[Any] = WeakSet()  # those that are routed
        self._restore = ExitStack()
        self._handlers: list[logging.Handler] = []  # pytest's own
        plugin = config.pluginmanager.getplugin("logging-plugin")
        if not self.routes or plugin is None:
            return
        # Keep the logs of cases from pytest's handlers. Between tests, pytest has none.
        self._handlers = [plugin.caplog_handler, plugin.report_handler, plugin.log_cli_handler, plugin.log_file_handler]
        for handler in self._handlers:
            handler.addFilter(_of_no_case)
            self._restore.callback(handler.removeFilter, _of_no_case)
        root, own = logging.getLogger(), _CaseHandler()
        root.addHandler(own)
        self._restore.callback(root.removeHandler, own)
        if (level := plugin.log_level) is not None:
            own.setLevel(level)
            self._restore.callback(root.setLevel, root.level)
            root.setLevel(min(root.level, level))

    def route(self) -> None:
        """Route the current streams, which pytest replaces between and during tests."""
        for name in _STREAMS if self.routes else ():
            stream = getattr(sys, name)
            if not hasattr(stream, "__dict__") or isinstance(stream.write, _RoutedStream):
                continue
            stream.write = _RoutedStream(name, stream.write)
            self._streams.add(stream)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self) -> Generator[None]:
        """Route the streams that `capsys` sets for a test, because cases may print while it runs."""
        self.route()
        yield

    def show(self, printed: CapturedOutput | None) -> None:
        """Print and log the captured output of a case again, so that pytest captures it for the running test."""
        if printed is None:
            return
        texts, printed.texts = printed.texts, []
        for name, text in texts:
            getattr(sys, name).write(text)
        logged, printed.logged = printed.logged, []
        listening = [handler for handler in self._handlers if handler in logging.root.handlers]
        for record in logged:
            for handler in listening:
                if record.levelno >= handler.level:
                    handler.handle(record)

    def close(self) -> None:
        """Restore the original streams and handlers."""
        for stream in self._streams:
            stream.__dict__.pop("write", None)
        self._streams.clear()
        self._restore.close()


class _RoutedStream:
    """The `write` of a stream: it writes into the buffer of the case that calls it, or else into the stream."""

    def __init__(self, name: str, write: Callable[[str], Any]) -> None:
        self._name = name
        self._write = write

    def __call__(self, text: str) -> Any:
        printed = _PRINTED.get()
        if printed is None or not isinstance(text, str):  # of the wrong type: the stream says so
            return self._write(text)
        printed.texts.append((self._name, text))
        return len(text)


def _of_no_case(_: logging.LogRecord) -> bool:
    return _PRINTED.get() is None


class _CaseHandler(logging.Handler):
    """A handler that keeps a case's log records, formatted at once: their arguments may change."""

    def emit(self, record: logging.LogRecord) -> None:
        if (printed := _PRINTED.get()) is None:
            return
        try:
            text = self.format(record)
        except Exception:  # noqa: BLE001 - as every handler of `logging` does: an argument of the user's may raise
            self.handleError(record)
            return
        kept = copy(record)
        kept.msg = kept.message = text
        kept.args = kept.exc_info = kept.exc_text = kept.stack_info = None  # the text has all of them
        printed.logged.append(kept)
