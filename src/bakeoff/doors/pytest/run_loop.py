"""Run the tests of a session as pytest does, and report cases that are finished already several at a time.

For each test, pytest calls the hook `pytest_runtest_protocol`, and around it every plugin does something before and
after. For a case that has been run beside others that is most of the cost, and there is nothing to do. So the call for
one case also reports the finished cases that follow it.
"""

import pytest

from bakeoff.doors.pytest.items import EvalItem, all_known

_MAX_TOGETHER = 64  # cases, so that warnings are shown with a test that ran at about their time
_AROUND_A_TEST = (
    "runner",
    "assertion",
    "faulthandler",
    "unittest",
    "unraisableexception",
    "threadexception",
    "warnings",
)
"""Modules of pytest that do nothing around a test in which nothing happens."""


class TestLoop:
    """Run the items of a session in their order."""

    __test__ = False  # keep pytest from collecting it

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._place = 0  # of the item that runs

    def run(self) -> bool:
        """Run all items. Raise what pytest's own loop raises."""
        session = self._session
        while self._place < len(session.items):
            item, nextitem = self._item(0), self._item(1)
            assert item is not None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            self._place += 1
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        return True

    def _item(self, ahead: int) -> pytest.Item | None:
        items, place = self._session.items, self._place + ahead
        return items[place] if place < len(items) else None

    def report_following(self) -> None:
        """Report the cases after the one that runs, as far as they are finished."""
        session = self._session
        for _ in range(_MAX_TOGETHER):
            item = self._item(1)
            if not isinstance(item, EvalItem) or session.shouldfail or session.shouldstop:
                return
            if not item.follows_unnoticed(self._item(2)) or not item.report_if_finished():
                return
            self._place += 1


def loop_for(session: pytest.Session) -> TestLoop | None:
    """Return a loop for a session with evals; None where pytest or another plugin has to run it."""
    hooks = session.config.hook
    if (
        session.testsfailed
        or session.config.option.collectonly
        or not any(isinstance(e, EvalItem) for e in session.items)
    ):
        return None
    ours_alone = all_known(hooks.pytest_runtestloop, ("main",), wrappers=False)
    return TestLoop(session) if ours_alone and all_known(hooks.pytest_runtest_protocol, _AROUND_A_TEST) else None
