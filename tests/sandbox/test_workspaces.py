"""A private folder with a sandbox around it, and what a grader finds in its own."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bakeoff.errors import InfraError
from bakeoff.plan import Case, Limits
from bakeoff.protocols import Sandbox
from bakeoff.sandbox import choose_sandbox
from bakeoff.sandbox.places import graded_files, open_workspace
from bakeoff.sandbox.programs import ALLOWED, ALLOWED_PREFIX, private

HIDDEN = {"tests/test_a.py": "hidden", "conftest.py": "hidden"}


@pytest.fixture(params=["process", "bwrap"])
def sandbox(request: pytest.FixtureRequest, needs_program: Callable[[str], str]) -> Sandbox:
    if request.param == "bwrap":
        needs_program("bwrap")
    return choose_sandbox(request.param)


@pytest.mark.parametrize(
    ("artefacts", "taken"),
    [
        ({"main.py": "mine"}, {"main.py": "mine", "data/x": "visible", **HIDDEN}),
        ({"tests/test_a.py": "forged"}, {"main.py": "visible", "data/x": "visible", **HIDDEN}),
        ({"tests/./test_a.py": "forged"}, {"main.py": "visible", "data/x": "visible", **HIDDEN}),
        ({"tests//test_a.py": "forged"}, {"main.py": "visible", "data/x": "visible", **HIDDEN}),
        ({"tests": "a file where a folder must be"}, {"main.py": "visible", "data/x": "visible", **HIDDEN}),
        ({"conftest.py/x": "a folder where a file must be"}, {"main.py": "visible", "data/x": "visible", **HIDDEN}),
        (
            {"tests/test_b.py": "beside"},
            {"main.py": "visible", "data/x": "visible", "tests/test_b.py": "beside", **HIDDEN},
        ),
        ({"data": "a file where a folder was"}, {"main.py": "visible", "data": "a file where a folder was", **HIDDEN}),
        (
            {"main.py/x": "a folder where a file was"},
            {"main.py/x": "a folder where a file was", "data/x": "visible", **HIDDEN},
        ),
        ({}, {"main.py": "visible", "data/x": "visible", **HIDDEN}),
    ],
)
async def test_artefacts_never_cover_hidden_files_nor_keep_a_grader_from_its_own(
    artefacts: dict[str, str], taken: dict[str, str]
) -> None:
    case = Case(id="c", prompt="?", files={"main.py": "visible", "data/x": "visible"}, hidden=HIDDEN)
    assert graded_files(case, artefacts) == taken
    async with open_workspace(choose_sandbox("process"), graded_files(case, artefacts), Limits()) as workspace:
        for name, text in taken.items():
            assert (workspace.folder / name).read_text() == text


async def test_a_workspace_holds_its_files_and_is_gone_afterwards(sandbox: Sandbox) -> None:
    async with open_workspace(sandbox, {"a/b.txt": "é"}, Limits()) as workspace:
        done = await workspace.run(("cat", "a/b.txt"), seconds=20)
        assert (done.ok, done.stdout.decode()) == (True, "é")
        folder = workspace.folder
        assert folder.is_dir()
    assert not folder.exists()


async def test_a_workspace_can_be_kept(tmp_path: Path) -> None:
    async with open_workspace(choose_sandbox("process"), {"a.txt": "x"}, Limits(), keep=True) as workspace:
        folder = workspace.folder
    assert (folder / "a.txt").read_text() == "x"
    (folder / "a.txt").unlink()


async def test_texts_are_taken_and_the_rest_is_refused_with_the_reason(sandbox: Sandbox) -> None:
    async with open_workspace(sandbox, {"good.txt": "text"}, Limits()) as workspace:
        make = r"printf '\377' > bad.txt; ln -s /etc/passwd link.txt; mkdir dir.txt; printf x > other.bin"
        assert (await workspace.run(("sh", "-c", make), seconds=20)).ok
        texts, refused = await workspace.collect(("*.txt",))
    assert texts == {"good.txt": "text"}
    assert refused == {
        "bad.txt": "not UTF-8 text",
        "link.txt": "is a symbolic link",
        "dir.txt": "is a folder",
    }


async def test_a_file_that_would_fill_our_memory_is_refused_by_name() -> None:
    async with open_workspace(choose_sandbox("process"), {"small.txt": "text"}, Limits()) as workspace:
        with (workspace.folder / "huge.txt").open("wb") as file:
            file.truncate(40 * 1024 * 1024)
        texts, refused = await workspace.collect(("*.txt",))
    assert texts == {"small.txt": "text"}
    assert list(refused) == ["huge.txt"]


async def test_writing_outside_is_refused() -> None:
    async with open_workspace(choose_sandbox("process"), {}, Limits()) as workspace:
        with pytest.raises(InfraError, match=r"'\.\./x' cannot be put into the work folder"):
            workspace.write({"../x": ""})


async def test_a_command_sees_no_variable_outside_the_allow_list(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {"OPENAI_API_KEY": "sk-1", "AWS_SECRET_ACCESS_KEY": "sk-2", "MY_OWN": "sk-3", "LD_PRELOAD_X": "sk-4"}
    for name, value in {**secrets, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}.items():
        monkeypatch.setenv(name, value)
    show = "import json, os; print(json.dumps(dict(os.environ)))"
    async with open_workspace(sandbox, {}, Limits()) as workspace:
        done = await workspace.run(("python3", "-c", show), seconds=20, env={"GIVEN": "yes"})
        parent = await workspace.run(("sh", "-c", "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"), seconds=20)
    seen = json.loads(done.stdout)
    own = {*private(workspace.place), "PATH", "GIVEN", "LC_CTYPE"}
    assert {name for name in seen if name not in ALLOWED | own and not name.startswith(ALLOWED_PREFIX)} == set()
    assert (seen["GIVEN"], seen["LANG"]) == ("yes", "C.UTF-8")
    for value in secrets.values():
        assert value not in str(seen)
        assert value.encode() not in parent.stdout
