"""Test what cases print and log while others run beside them."""

import re
from collections import Counter

import pytest

from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]

TALKING = """
import logging, sys
LOG = logging.getLogger("app")

def say(number, line):
    print(f"case-{number} out-{line}")
    print(f"case-{number} err-{line}", file=sys.stderr)
    LOG.warning("case-%s log-%s", number, line)

def wrong(given):
    print(f"case-{given.input} scored")
    return 0

@eval_suite(data=rows(*range(15)), scorers=[wrong])
async def test_async(case):
    for line in range(7):
        say(case.input, line)
        await asyncio.sleep(0.002)
    await asyncio.to_thread(say, case.input, "thread")
    await asyncio.get_running_loop().run_in_executor(None, say, case.input, "executor")
    return "x"

@eval_suite(data=rows(*range(15)), scorers=[wrong])
def test_sync(case):
    for line in range(9):
        say(case.input, line)
        time.sleep(0.002)
    return "x"
"""


def lines_by_section(text: str) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Count the lines of cases by test and section, and return those that stand anywhere else."""
    counted: Counter[tuple[str, str]] = Counter()
    escaped, test, number, section = [], "", "", ""
    for line in text.splitlines():
        if found := re.match(r"_+ (test_\w+\[(\d+)\]) _+$", line):
            test, number = found.groups()
        elif line.startswith("="):
            test = number = ""
        elif found := re.match(r"-+ Captured (\w+) call", line):
            section = found[1]
        elif found := re.search(r"case-(\d+) ", line):
            counted[test, section] += found[1] == number
            escaped += [line] if found[1] != number else []
    return counted, escaped


@pytest.mark.parametrize("how", [(), ("--capture=sys",), ("-p", "xdist", "-n", "2")])
def test_each_line_is_shown_with_its_own_case_and_nowhere_else(project: SmallProject, how: tuple[str, ...]) -> None:
    project.write(TALKING)
    counted, escaped = lines_by_section(project.run_apart(*how).text)
    assert escaped == []
    assert len(counted) == 2 * 15 * 3
    for (test, section), lines in counted.items():
        assert lines == 9 + (section == "stdout"), (test, section)


def test_everything_is_printed_at_once_with_s_and_each_record_is_logged_once(project: SmallProject) -> None:
    project.write(TALKING)
    seen = project.run_apart("-s", "-o", "log_file=log.txt", "-k", "test_async")
    assert "Captured stdout" not in seen.text
    assert len(re.findall(r"case-\d+ out-", seen.text)) == 15 * 9
    assert len(project.path.joinpath("log.txt").read_text().splitlines()) == 15 * 9


def test_fixtures_that_capture_see_what_the_case_prints_and_logs(project: SmallProject) -> None:
    project.write("""
import logging, sys

@eval_suite(data=rows("a", "b"), scorers=[right])
def test_sys(case, capsys):
    print(case.input)
    return f"<{capsys.readouterr().out.strip()}>"

@eval_suite(data=rows("a", "b"), scorers=[right])
async def test_fd(case, capfd):
    os.write(1, case.input.encode())
    print("!")
    return f"<{capfd.readouterr().out[:1]}>"

@eval_suite(data=rows("a", "b"), scorers=[right])
def test_log(case, caplog):
    logging.getLogger("app").warning("%s", case.input)
    return f"<{caplog.messages[0]}>"

@eval_suite(data=rows(*range(8)), scorers=[right], concurrency=4)
async def test_loud(case):
    await asyncio.sleep(0.01)
    print("loud")
    return f"<{case.input}>"

def test_between(capsys):
    time.sleep(0.1)
    print("mine")
    assert capsys.readouterr().out == "mine\\n"
""")
    project.write(
        """
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: (item.name > "test_loud[3]", item.name == "test_between" and 1 or 2))
""",
        "conftest.py",
    )
    seen = project.run_apart("-o", "log_level=INFO")
    assert seen.counts() == {"passed": 15}, seen.text


def test_standard_streams_are_as_before_after_a_session(project: SmallProject) -> None:
    import logging
    import sys

    project.write(TALKING)
    before = (sys.stdout, sys.stderr, sys.stdout.write, list(logging.root.handlers), logging.root.level)
    project.run("-k", "test_async and (1 or 2)")
    assert (sys.stdout, sys.stderr, sys.stdout.write, list(logging.root.handlers), logging.root.level) == before
