"""Collect the items of a suite: one for each row and each set of pytest's parameters."""

import inspect
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bakeoff._kernel.text import escaped
from bakeoff._kernel.threads import is_async
from bakeoff.doors.pytest.adapters import digests_of, is_debugging
from bakeoff.doors.pytest.gather import UNREAD
from bakeoff.doors.pytest.groups import MAX_SUBJECTS, Group
from bakeoff.doors.pytest.items import EvalItem
from bakeoff.doors.pytest.loops import async_fixtures, run_here
from bakeoff.doors.pytest.rows import ENDS_THE_SESSION, EvalRow, read_rows
from bakeoff.doors.pytest.suite import FILES, MADE, DescribedSuite, EvalSuite

_DIRECT = "get_direct_param_fixture_func"  # pytest's name of the function behind a value of parametrize
_CAPTURING = frozenset(("capsys", "capsysbinary", "capfd", "capfdbinary", "caplog"))


def collect(collector: Any, name: str, suite: EvalSuite, *, static: bool = False) -> list[pytest.Item]:
    """Return the items of a suite. A problem with its data fails one item, and other suites still run."""
    if suite in MADE:
        MADE.remove(suite)
    described = replace(suite._bakeoff, static=static or suite._bakeoff.static)
    # The user's `skip_if` may raise anything; pytest keeps it as it does for tests.
    read = pytest.CallInfo.from_call(lambda: _skip_reason(described), "collect", ENDS_THE_SESSION)
    skipped = None if read.excinfo else read.result
    if read.excinfo:
        error = read.excinfo.value
        rows = [EvalRow("data", {}, f"{UNREAD}: skip_if raised {type(error).__name__}: {error}", error)]
    else:
        rows = [EvalRow("skipped", {})] if skipped else read_rows(described.data, collector.path.parent)
    templates: list[pytest.Function] = list(collector._genfunctions(name, suite))  # one for each set of parameters
    marked = any(template.get_closest_marker("anyio") for template in templates)
    if marked and any(map(async_fixtures, templates)) and "anyio_backend" not in templates[0].fixturenames:
        pytest.mark.usefixtures("anyio_backend")(suite)  # as anyio does with functions
        templates = list(collector._genfunctions(name, suite))
    as_subjects = len(templates) <= MAX_SUBJECTS
    items: list[pytest.Item] = []
    for template in templates:
        group = _group(collector, template, described, rows, _line(collector, suite), as_subjects=as_subjects)
        group.skipped = skipped
        items += _items(collector, template, group)
    return items


def _skip_reason(described: DescribedSuite) -> str | None:
    """Return why the suite is skipped; None if it is not."""
    skip = described.skip_if() if callable(described.skip_if) else described.skip_if
    skip = run_here(skip) if inspect.isawaitable(skip) else skip
    return skip if skip and isinstance(skip, str) else "skip_if" if skip else None


def _group(
    collector: Any,
    template: pytest.Function,
    described: DescribedSuite,
    rows: list[EvalRow],
    line: int | None,
    *,
    as_subjects: bool,
) -> Group:
    file = template.session._node_location_to_relpath(collector.path)
    before = template.getmodpath().removesuffix(template.name)  # the class, if there is one
    base, _, parameters = template.name.partition("[")
    is_method = isinstance(collector, pytest.Class) and described.given_a_case and not described.static
    borrows = is_async(described.function) and bool(async_fixtures(template))
    fixtures = (found[-1] for found in template._fixtureinfo.name2fixturedefs.values())
    # Fixtures of a function make its cases serial; others that are made anew before the session ends are not lasting.
    lasting = all(each.scope in ("session", "function") and not each.params for each in fixtures)
    in_case = f"{parameters[:-1]}-" if parameters and not as_subjects else ""  # parameters that tell cases apart
    return Group(
        described,
        rows,
        location=(file, line, before),
        file=collector.path,
        around=(escaped(f"{collector.nodeid}::{base}[{in_case}"), "]"),
        parameters=escaped(parameters[:-1]) if as_subjects else "",
        holder=collector.newinstance if is_method else None,
        serial="a debugger may stop in it" if is_debugging(collector.config) else _serial_because(template),
        captures=not _CAPTURING.isdisjoint(template.fixturenames),
        borrows=borrows,
        lasting=lasting and not borrows,
        scorers=digests_of(described.scorers),
    )


def _line(collector: Any, suite: EvalSuite) -> int | None:
    """Return the line, counted from 0, of a suite's function in its file, or else of the suite itself."""
    code = getattr(inspect.unwrap(suite._bakeoff.function), "__code__", None)
    if code is not None and code.co_filename == str(collector.path):
        return int(code.co_firstlineno) - 1
    file, line = suite._place
    return line - 1 if file == str(collector.path) else None


def warn_of_uncollected() -> None:
    """Warn of suites in the collected files whose names pytest does not collect as tests."""
    made, files = list(MADE), set(FILES)
    MADE.clear()
    FILES.clear()
    for suite in made:
        file, line = suite._place
        if file not in files or getattr(suite, "__test__", True) is False:
            continue
        name = suite._bakeoff.name
        wanted = "test_" + (re.sub(r"\W+", "_", name).strip("_") or "it")
        how = f"rename its function to `{wanted}`" if suite._bakeoff.given_a_case else f"bind it: `{wanted} = …`"
        text = f"the eval suite {name!r} is not collected, so it tests nothing: {how}, or set its `__test__` to False"
        try:
            warnings.warn_explicit(pytest.PytestCollectionWarning(text), None, file, line)
        except pytest.PytestCollectionWarning as error:  # -W error
            raise pytest.UsageError(f"{file}:{line}: {error}") from None


def _serial_because(template: pytest.Function) -> str | None:
    """Return why cases cannot run side by side, such as fixtures of single cases; else None."""
    info = template._fixtureinfo
    asked_for = {*info.argnames, *(name for mark in template.iter_markers("usefixtures") for name in mark.args)}
    if "request" in asked_for:
        return "it asks for 'request'"
    for name in info.names_closure:
        definitions = info.name2fixturedefs.get(name)
        if not definitions or definitions[-1].scope != "function":
            continue
        function = definitions[-1].func
        if getattr(function, "__name__", "") == _DIRECT:
            continue
        if name in asked_for:
            return f"it asks for the function-scoped fixture {name!r}"
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            return f"the function-scoped fixture {name!r} has something to do after each case"
    return None


def _items(collector: Any, template: pytest.Function, group: Group) -> Iterator[pytest.Item]:
    base, _, parameters = template.name.partition("[")
    opening = f"{base}[{parameters[:-1]}-" if parameters else f"{base}["
    for row in group.rows:
        item = EvalItem.from_parent(
            collector,
            name=f"{opening}{row.id}]",
            callspec=getattr(template, "callspec", None),
            fixtureinfo=template._fixtureinfo,
            originalname=base,
            group=group,
            row=row,
        )
        for mark in row.marks:
            item.add_marker(mark)
        yield item
