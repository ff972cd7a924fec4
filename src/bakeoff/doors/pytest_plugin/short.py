"""The short way through pytest's protocol, for an eval with nothing to set up and nothing to tear down.

pytest goes through three phases for each test and reports each of them. Between two cases of a suite without fixtures,
two of the phases do nothing: they are left out where nobody but pytest itself would notice.
"""

from typing import TYPE_CHECKING, Any

import pytest
from _pytest.logging import caplog_records_key
from _pytest.runner import call_and_report

if TYPE_CHECKING:
    from bakeoff.doors.pytest_plugin.items import EvalItem

_OURS = "bakeoff."
_AROUND_A_PHASE = ("runner", "capture", "logging", "skipping", "threadexception", "unraisableexception")
_KNOWN = {
    "pytest_runtest_setup": _AROUND_A_PHASE,
    "pytest_runtest_call": _AROUND_A_PHASE,
    "pytest_runtest_teardown": _AROUND_A_PHASE,
    "pytest_runtest_makereport": ("runner", "skipping", "tmpdir", "unittest"),
    "pytest_runtest_logreport": ("main", "terminal", "logging", "cacheprovider"),
}
"""Modules of pytest that have no use for a phase in which nothing happens, hook by hook."""

_SHOWING_PHASES = ("setuponly", "setupshow", "setupplan", "durations")
_FOR_SETUP = ("skip", "skipif", "xfail")  # marks that are judged there


def run_shortly(item: "EvalItem", nextitem: pytest.Item | None) -> bool:
    """Run an eval by its call phase alone; False where the whole protocol is called for."""
    if nextitem is None or nextitem.parent is not item.parent or not _has_nothing_to_set_up(item):
        return False
    hooks, session = item.ihook, item.session
    hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    item.take_over()
    item.stash[caplog_records_key] = {}  # what is logged has its place there from the setup on
    call_and_report(item, "call")
    if session.shouldfail or session.shouldstop:
        call_and_report(item, "teardown", nextitem=None)
    hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _has_nothing_to_set_up(item: "EvalItem") -> bool:
    group = item.group
    if group.unnoticed is None:
        group.unnoticed = group.skipped is None and _nobody_would_notice(item)
    if not group.unnoticed or any(mark.name in _FOR_SETUP for mark in item.own_markers):
        return False
    stack = item.session._setupstate.stack
    return next(reversed(stack), None) is item.parent and not any(failed for _, failed in stack.values())


def _nobody_would_notice(item: "EvalItem") -> bool:
    option, hooks = item.config.option, item.ihook
    asked_for = (getattr(option, name, None) for name in _SHOWING_PHASES)
    if any(value is not None and value is not False for value in asked_for):  # 0 is all of them
        return False
    if any(mark.name in _FOR_SETUP for node in item.listchain()[:-1] for mark in node.own_markers):
        return False
    return _all_known(hooks.pytest_runtest_protocol, ("runner",), around=False) and all(
        _all_known(getattr(hooks, name), known) for name, known in _KNOWN.items()
    )


def nobody_else_makes_reports(item: "EvalItem") -> bool:
    """Whether a report may be made before others are asked for one; what is around the making sees it anyway."""
    name = "pytest_runtest_makereport"
    return _all_known(getattr(item.ihook, name), _KNOWN[name], around=False)


def _all_known(hook: Any, known: tuple[str, ...], *, around: bool = True) -> bool:
    return all(
        _is_known(each, known) for each in hook.get_hookimpls() if around or not (each.wrapper or each.hookwrapper)
    )


def _is_known(implementation: Any, known: tuple[str, ...]) -> bool:
    module: str = implementation.function.__module__
    return module.startswith(_OURS) or module.removeprefix("_pytest.") in known
