"""Running evals side by side where fixtures allow it, and reporting them in order."""

import threading

import pytest

from bakeoff.storage.run_folder import find_run

from .small_project import SmallProject, project

pytestmark = pytest.mark.journey

pytest_plugins = ["pytester"]
__all__ = ["project"]


MEETING = """
met = threading.Barrier(3)

@eval_suite(data=rows("a", "b", "c"), scorers=[right], timeout=20)
def test_meet({arguments}):
    met.wait(20)  # goes on only when all three are there at a time
    return f"<{{case.input}}>"
"""


def test_cases_of_a_suite_run_side_by_side_and_are_reported_in_order(project: SmallProject) -> None:
    project.write("""
order = []
gate = None

@eval_suite(data=rows("a", "b", "c"), scorers=[right])
async def test_last_first(case):
    global gate
    gate = gate or asyncio.Event()
    if case.input == "c":
        gate.set()
    else:
        await gate.wait()  # those before can only end after the last has begun
    order.append(case.input)
    return f"<{case.input}>"

def test_after():
    assert sorted(order) == ["a", "b", "c"] and order[0] == "c"
""")
    seen = project.run("-v")
    assert seen.counts() == {"passed": 4}
    assert [each.case for each in seen.outcomes] == ["a", "b", "c"]


def test_sync_functions_run_side_by_side_off_the_loop(project: SmallProject) -> None:
    project.write(MEETING.format(arguments="case"))
    assert project.run().counts() == {"passed": 3}


CONCURRENCY = """
now = most = 0

@eval_suite(data=rows(*range(12)), scorers=[right], {options})
async def test_it(case):
    global now, most
    now += 1
    most = max(most, now)
    for _ in range(20):
        await asyncio.sleep(0)
    now -= 1
    return f"<{{case.input}}>"

def test_most():
    assert most == {most}
"""


@pytest.mark.parametrize(
    ("options", "arguments", "most"),
    [
        ("", (), 10),
        ("concurrency=3", (), 3),
        ("concurrency=3", ("--eval-jobs", "4"), 4),
        ("rounds=2, concurrency=5", (), 5),
    ],
)
def test_no_more_at_a_time_than_asked_for(
    project: SmallProject, options: str, arguments: tuple[str, ...], most: int
) -> None:
    project.write(CONCURRENCY.format(options=options, most=most))
    assert project.run(*arguments).counts() == {"passed": 13}


WIDE = {
    "module": '@pytest.fixture(scope="module")\ndef shared(): yield "shared"',
    "session": '@pytest.fixture(scope="session")\ndef shared(): return "shared"',
}


@pytest.mark.parametrize("fixture", WIDE.values(), ids=WIDE)
def test_fixtures_of_wider_scope_are_shared_by_cases_that_run_side_by_side(project: SmallProject, fixture: str) -> None:
    project.write(
        f"{fixture}\n"
        + MEETING.format(arguments="shared, case").replace("return", "assert shared == 'shared'; return")
        + "def test_later(shared): assert shared == 'shared'"
    )
    seen = project.run("-v")
    assert seen.counts() == {"passed": 4}
    assert "one case at a time" not in seen.text


SERIAL = {
    "asked for": (
        "@pytest.fixture\ndef own(): return object()",
        "case, own",
        "it asks for the function-scoped fixture 'own'",
    ),
    "built in": ("", "case, tmp_path, monkeypatch", "it asks for the function-scoped fixture 'tmp_path'"),
    "request": ("", "case, request", "it asks for 'request'"),
    "autouse that yields": (
        "@pytest.fixture(autouse=True)\ndef around():\n    yield",
        "case",
        "the function-scoped fixture 'around' has something to do after each case",
    ),
    "setup_function": ("def setup_function(function): ...", "case", "has something to do after each case"),
}


@pytest.mark.parametrize(("fixture", "arguments", "why"), SERIAL.values(), ids=SERIAL)
def test_function_scoped_fixtures_make_a_suite_run_one_case_at_a_time(
    project: SmallProject, fixture: str, arguments: str, why: str
) -> None:
    project.write(f"""
{fixture}
now = 0

@eval_suite(data=rows("a", "b", "c"), scorers=[right])
async def test_alone({arguments}):
    global now
    now += 1
    for _ in range(20):
        await asyncio.sleep(0)
    assert now == 1
    now -= 1
    return f"<{{case.input}}>"
""")
    seen = project.run("-v")
    assert seen.counts() == {"passed": 3}
    assert "evals: test_alone runs one case at a time: " in seen.text
    assert why in seen.text
    assert "one case at a time" not in project.run().text


def test_each_case_of_a_serial_suite_has_its_own_fixture_which_ends_after_it(project: SmallProject) -> None:
    project.write("""
log = []

@pytest.fixture
def own(request):
    log.append("begin")
    yield len(log)
    log.append("end")

@eval_suite(data=rows("a", "b"), scorers=[right])
def test_it(own, case):
    log.append(case.input)
    return f"<{case.input}>"

def test_log():
    assert log == ["begin", "a", "end", "begin", "b", "end"]
""")
    assert project.run().counts() == {"passed": 3}


def test_an_autouse_fixture_that_only_sets_up_does_not_serialise(project: SmallProject) -> None:
    project.write("@pytest.fixture(autouse=True)\ndef before(): return 1\n" + MEETING.format(arguments="case"))
    assert project.run().counts() == {"passed": 3}


def test_parametrize_gives_the_matrix_and_each_column_its_own_fixture(project: SmallProject) -> None:
    project.write("""
@pytest.fixture(scope="module", params=["eu", "us"])
def region(request):
    return request.param

@pytest.mark.parametrize("model", ["small", pytest.param("large", marks=pytest.mark.xfail)])
@eval_suite(data=rows("a", "b"), scorers=[right])
async def test_models(case, model, region):
    return f"<{case.input}>" if model == "small" else f"{model} in {region}"
""")
    seen = project.run("-v")
    assert seen.counts() == {"passed": 4, "xfailed": 4}
    assert "runs one case at a time" not in seen.text
    assert sorted(each.nodeid.partition("[")[2] for each in seen.outcomes) == sorted(
        f"{one}-{case}]" for one in ("eu-small", "us-small", "eu-large", "us-large") for case in "ab"
    )
    (record,) = next(each for each in seen.outcomes if "us-large-b" in each.nodeid).records
    assert record.transcript is not None
    assert record.transcript.output == "large in us"


def test_marks_and_selection_work_on_both_sides_of_the_decorator(project: SmallProject) -> None:
    project.path.joinpath("tox.ini").write_text("[pytest]\nmarkers =\n  slow\n  quick\n")
    project.write("""
@pytest.mark.slow
@eval_suite(data=rows("a", "b"), scorers=[right])
@pytest.mark.quick
async def test_marked(case):
    ran.append(case.input)
    return f"<{case.input}>"

ran = []

@pytest.mark.skipif(True, reason="not now")
@eval_suite(data=rows("c"), scorers=[right])
def test_skipped(case):
    ran.append(case.input)

@pytest.mark.xfail(raises=KeyError, strict=True)
@eval_suite(data=rows("d"), scorers=[right])
def test_expected(case):
    return {}["key"]
""")
    for arguments, counts in (
        ((), {"passed": 2, "skipped": 1, "xfailed": 1}),
        (("-m", "slow and quick"), {"passed": 2, "deselected": 2}),
        (("-k", "marked and b"), {"passed": 1, "deselected": 3}),
        (("test_it.py::test_marked[a]",), {"passed": 1}),
        (("test_it.py::test_marked", "--deselect", "test_it.py::test_marked[a]"), {"passed": 1, "deselected": 1}),
    ):
        assert project.run(*arguments).counts() == counts


def test_only_selected_cases_are_begun(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows("a", "b", "c"), scorers=[right])
async def test_it(case):
    with open("ran.txt", "a") as file:
        file.write(case.input)
    return f"<{case.input}>"
""")
    assert project.run("-k", "a or c").counts() == {"passed": 2, "deselected": 1}
    assert (project.path / "ran.txt").read_text() == "ac"


def test_classes_hold_suites_and_each_case_has_an_object(project: SmallProject) -> None:
    project.write("""
class TestIt:
    word = "<{}>"

    @eval_suite(data=rows("a", "b"), scorers=[right])
    async def test_light(self, case):
        assert not hasattr(self, "mine")
        self.mine = case.input
        return self.word.format(case.input)

    @pytest.fixture
    def own(self):
        self.left = "left"

    @eval_suite(data=rows("a", "b"), scorers=[right])
    def test_with_fixture(self, own, case):
        assert self.left == "left"
        return self.word.format(case.input)

    def setup_method(self): ...

class TestMore(TestIt):
    word = "<{}>"
""")
    seen = project.run("-v")
    assert seen.counts() == {"passed": 8}
    assert "test_it.py::TestMore::test_light[b] PASSED" in seen.text


def test_a_task_may_skip_or_fail_its_own_case(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows("skip", "fail", "xfail", "good"), scorers=[right])
async def test_it(case):
    if case.input == "skip":
        pytest.skip("not this one")
    if case.input == "fail":
        pytest.fail("on purpose", pytrace=False)
    if case.input == "xfail":
        pytest.xfail("known")
    return f"<{case.input}>"
""")
    seen = project.run("-rsx")
    assert seen.counts() == {"passed": 1, "skipped": 1, "failed": 1, "xfailed": 1}
    assert "on purpose" in seen.text
    undecided = [(each.case, each.problem) for each in seen.outcomes if each.passed is None]
    assert undecided == [("skip", "it was skipped: not this one"), ("xfail", "it was skipped: known")]


def test_far_more_cases_than_may_wait_to_be_reported(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows(*range(1300)), scorers=[right])
async def test_it(case):
    return f"<{case.input}>"
""")
    seen = project.run("-q")
    assert seen.counts() == {"passed": 1300}
    assert [each.case for each in seen.outcomes] == [str(number) for number in range(1300)]


def test_a_fixture_that_is_made_anew_between_cases_is_the_one_they_are_given(project: SmallProject) -> None:
    project.path.joinpath("conftest.py").write_text("""
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.name[-2])  # modules in turn: each is left and entered again
""")
    for name in ("test_one.py", "test_two.py"):
        project.write(
            """
made = []

@pytest.fixture(scope="module")
def shared():
    made.append(1)
    yield len(made)
    made.append("gone")

@eval_suite(data=rows("a", "b"), scorers=[lambda given: True])
async def test_it(case, shared):
    await asyncio.sleep(0)
    return str(shared)
""",
            name,
        )
    seen = project.run()
    assert seen.counts() == {"passed": 4}
    outputs = [each.records[0].transcript.output for each in seen.outcomes if each.records[0].transcript]
    assert outputs == ["1", "1", "3", "3"]


def test_a_case_that_a_conftest_marks_to_be_skipped_is_not_run_ahead(project: SmallProject) -> None:
    project.write("""
@eval_suite(data=rows("a", "b", "c"), scorers=[right])
async def test_it(case):
    open(f"ran-{case.input}", "x").close()
    return f"<{case.input}>"
""")
    marking = """
import threading

import pytest

def pytest_collection_modifyitems(items):
    items[1].add_marker(pytest.mark.skip)
"""
    project.write(marking, "conftest.py", head="")
    assert project.run().counts() == {"passed": 2, "skipped": 1}
    assert sorted(path.name for path in project.path.glob("ran-*")) == ["ran-a", "ran-c"]


SURROGATES = """
data = [{"input": "half \\ud83d of it", "name": "row", "expected": "\\udcff"}, *rows("plain")]
data += [{"input": {"all": ["\\udfff"]}, "name": "data", "expected": {"\\udfff": ["\\udfff"]}}]

@eval_suite(data=data, scorers=[right], threshold=0.5)
def test_it(case):
    call = ToolCall(name="look", arguments={"\\ud800": ["\\udfff"]}, result="\\ud800")
    return TaskResult(result=f"said \\ud83d {case.input}", tool_calls=[call])

test_whole = describe_eval("whole", data=rows("good"), task=lambda input: "<good>", scorers=[right])
"""


@pytest.mark.parametrize("arguments", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"])
def test_halves_of_surrogate_pairs_are_shown_and_break_nothing(
    project: SmallProject, arguments: tuple[str, ...]
) -> None:
    project.write(SURROGATES)
    files = ("--eval-json=e.json", "--eval-html=e.html", "--eval-junit", "--junitxml=j.xml")
    seen = project.run_apart("-v", *arguments, *files, record=())
    assert seen.counts() == {"passed": 1, "failed": 3}
    assert "INTERNALERROR" not in seen.text + seen.result.stderr.str()
    seen.result.stdout.fnmatch_lines(["  input * half *d83d of it", "  output * said *d83d half *d83d of it"])
    assert r"half \\ud83d of it" in (project.path / "e.json").read_text()
    assert (project.path / "e.html").is_file()
    kept = find_run(project.path / "results", "latest")
    assert len(list(kept.latest_records(kept.read_plan()))) == 4


def test_no_thread_is_left_after_a_session(project: SmallProject) -> None:
    project.write(MEETING.format(arguments="case"))
    before = set(threading.enumerate())
    assert project.run().counts() == {"passed": 3}
    assert {thread.name for thread in set(threading.enumerate()) - before} == set()
