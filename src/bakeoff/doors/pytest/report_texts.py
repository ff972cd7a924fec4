"""Keep secrets and commands out of what pytest itself prints and writes, in sessions with evals.

Every project that has bakeoff installed loads this module, so it imports only pytest. Sessions
without evals are not changed. Reports are redacted when they are made, for the terminal, JUnit and
other plugins; names of tests are redacted after collection, and other output when it is printed.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bakeoff._kernel.text import escaped, free_name, without_command
from bakeoff.doors.pytest.gather import ON_REPORT
from bakeoff.doors.pytest.options import has_eval

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from warnings import WarningMessage

    from bakeoff.storage.redaction import Redactor

    TextChange = Callable[[str], str]


_SUITE_MODULE = "bakeoff.doors.pytest.suite"  # imported by every file with a suite


class SessionSecrets:
    """Hooks that redact the session's output from its first eval on."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_active = False
        self._secrets: dict[str, str] = {}
        self._environment: object = None
        self._redactor: Redactor | None = None

    def _starts(self) -> bool:
        """Return True if the session has evals and there are secrets to hide."""
        if not self._is_active and _SUITE_MODULE in sys.modules:
            self._activate()
        return self._is_active and bool(self._known())

    def _activate(self) -> None:
        self._is_active = True
        if self._config.getoption("capture", None) == "no":
            from bakeoff.storage.redacted_stream import redact_streams

            streams = sys.stdout, sys.stderr
            redact_streams()
            self._config.add_cleanup(lambda: _restore(*streams))

    def _known(self) -> "Redactor":
        """Return a redactor for the current environment, as tests and plugins may add keys."""
        environment = tuple(os.environ.items())
        if self._redactor is None or environment != self._environment:
            from bakeoff.storage.redaction import Redactor, known_secrets

            found = {name: value for name, value in known_secrets().items() if value not in self._secrets.values()}
            self._secrets |= {(f"{name}_" if name in self._secrets else name): value for name, value in found.items()}
            self._redactor, self._environment = Redactor(self._secrets), environment
        return self._redactor

    def _text(self, text: str) -> str:
        return self._redactor.text(text, cut=True) if self._redactor is not None else text

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Redact text on its way to the terminal, by wrapping the writer as pytest's pastebin plugin does."""
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if terminal is None:
            return
        writer = self._config.get_terminal_writer()
        write = writer.write
        writer.write = lambda text, **marks: write(self._text(text) if self._is_active else text, **marks)  # type: ignore[method-assign]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Remove secrets from the names of tests, which appear in every report and in pytest's cache."""
        if not self._is_active and any(map(has_eval, items)):
            self._activate()
        if not self._starts():
            return
        taken: set[str] = set()
        for item in items:
            if (name := self._text(item.nodeid)) == item.nodeid:
                continue
            taken.add(unique := free_name(name, taken, "{}-{}"))
            _rename(item, self._text(item.name), unique)
            own: dict[str, Any] = getattr(item.keywords, "_markers", {})
            for keyword in [word for word in own if self._text(word) != word]:
                own[self._text(keyword)] = own.pop(keyword)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> "Generator[None, pytest.TestReport, pytest.TestReport]":
        report = yield
        self._redact(report)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self) -> "Generator[None, pytest.CollectReport, pytest.CollectReport]":
        report = yield
        self._redact(report)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> "Generator[None]":
        """Redact texts that do not come from a test, such as the crash of an xdist worker."""
        if not self._is_active and ON_REPORT in vars(report):
            self._activate()
        self._redact(report)
        yield

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: "WarningMessage") -> None:
        """Redact a warning before pytest lists it in its summary."""
        said = str(warning_message.message)
        if self._starts() and (redacted := self._text(said)) != said:
            warning_message.message = Warning(redacted)

    def _redact(self, report: Any) -> None:
        has_texts = report.sections or report.longrepr is not None or getattr(report, "user_properties", ())
        if has_texts and self._starts():
            redact_report(report, self._text)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Redact the files that pytest has written: fixtures may add to JUnit, and loggers to the log file."""
        if not self._is_active or hasattr(self._config, "workerinput") or not self._known():
            return
        if xml := getattr(self._config.option, "xmlpath", None):
            _redact_file(Path(os.path.expandvars(xml)).expanduser(), self._known(), is_xml=True)
        if log := self._config.getoption("log_file", None) or self._config.getini("log_file"):
            _redact_file(self._config.rootpath / log, self._known())


def _rename(item: Any, name: str, nodeid: str) -> None:
    item.name = name
    vars(item).pop("location", None)  # cached, with the old name
    if hasattr(item, "_id"):  # from pytest 9 on
        item._id = type(item._id).parse(nodeid)
    else:
        item._nodeid = nodeid


def redact_report(report: Any, text: "TextChange") -> None:
    """Remove secrets from all texts of a report."""
    report.sections[:] = [(text(title), text(content)) for title, content in report.sections]
    properties = getattr(report, "user_properties", [])
    for place, (name, value) in enumerate(properties):
        said = str(value)
        properties[place] = (text(str(name)), value if (redacted := text(said)) == said else redacted)
    if hasattr(report, "wasxfail"):
        report.wasxfail = text(report.wasxfail)
    shown = report.longrepr
    if isinstance(shown, tuple):  # of a skip: file, line, reason
        report.longrepr = tuple(text(part) if isinstance(part, str) else part for part in shown)
    elif shown is not None and text(str(shown)) != str(shown):
        _change_longrepr(report, text)
        if text(said := str(report.longrepr)) != said:
            report.longrepr = text(said)


def break_up_commands(report: pytest.TestReport) -> None:
    """Make the output of an eval harmless, because a task's errors and prints may quote a model.

    A line such as `::error::…` in the log is a command to GitHub, and control characters in an error are commands to
    the terminal.
    """

    def broken_up(text: str) -> str:
        return "\n".join(map(without_command, text.split("\n")))

    report.sections[:] = [(title, broken_up(text)) for title, text in report.sections]
    _change_longrepr(report, lambda text: broken_up("".join(c if c in "\n\t" else escaped(c) for c in text)))


def _change_longrepr(report: Any, text: "TextChange") -> None:
    """Change the texts of an error, but not its structure, which pytest prints in colours."""
    shown = report.longrepr
    if isinstance(shown, str):
        report.longrepr = text(shown)
        return
    single = [(getattr(shown, "reprtraceback", None), getattr(shown, "reprcrash", None), None)]
    for trace, crash, _ in getattr(shown, "chain", single):
        for entry in getattr(trace, "reprentries", ()):
            entry.lines[:] = _changed(entry.lines, text)
            if getattr(entry, "reprlocals", None) is not None:
                entry.reprlocals.lines[:] = _changed(entry.reprlocals.lines, text)
            if getattr(entry, "reprfuncargs", None) is not None:
                entry.reprfuncargs.args = [(name, text(said)) for name, said in entry.reprfuncargs.args]
        if crash is not None:
            crash.message = text(crash.message)  # in CI, the short summary has all lines of it
    if isinstance(getattr(shown, "sections", None), list):
        shown.sections[:] = [(text(name), text(content), mark) for name, content, mark in shown.sections]


def _changed(lines: list[str], text: "TextChange") -> list[str]:
    """Change the lines as one text, because a secret may continue on the next line."""
    if not lines:
        return []
    ended = lines[-1].endswith("\n")
    whole = text(("" if ended else "\n").join(lines))
    return whole.splitlines(keepends=True) if ended else whole.split("\n")


def _redact_file(path: Path, redactor: "Redactor", *, is_xml: bool = False) -> None:
    try:
        data = path.read_bytes()
        if not redactor.finds(data):
            return
        written = redactor(data)
        if is_xml:  # its texts are redacted one by one, so that it stays XML
            from xml.etree import ElementTree

            tree = ElementTree.fromstring(data)  # noqa: S314 - pytest wrote it
            for element in tree.iter():
                element.attrib.update({name: redactor.text(value) for name, value in element.attrib.items()})
                element.text, element.tail = (said and redactor.text(said) for said in (element.text, element.tail))
            written = ElementTree.tostring(tree, encoding="utf-8", xml_declaration=True)
        path.write_bytes(written)
    except OSError:  # pytest has said that it could not write it
        return


def _restore(stdout: Any, stderr: Any) -> None:
    replaced: tuple[Any, ...] = (sys.stdout, sys.stderr)
    for stream in replaced:
        stream.flush()
        if stream not in (stdout, stderr):
            stream.detach()  # otherwise it closes the file that both share
    sys.stdout, sys.stderr = stdout, stderr
