"""The `process` sandbox without mounts, as a user without rights has it: files and sockets of others."""

import ctypes
import shutil
import socket
from pathlib import Path

import pytest

from bakeoff.protocols import Command, CommandResult, Place
from bakeoff.sandbox.process import ProcessSandbox, allowed_access
from bakeoff.sandbox.supervisor.kernel import LANDLOCK_CREATE, LANDLOCK_VERSION

SCOPES_SINCE = 6
VERSION = ctypes.CDLL(None).syscall(LANDLOCK_CREATE, None, 0, LANDLOCK_VERSION)


@pytest.fixture(autouse=True)
def needs_landlock() -> None:
    if VERSION < SCOPES_SINCE:
        pytest.skip(f"needs a kernel with Landlock {SCOPES_SINCE}, and this one has {VERSION}")


async def run(place: Place, script: str, *, hidden: tuple[Path, ...] = (), **more: object) -> CommandResult:
    argv = ("/bin/sh", "-c", script)
    command = Command(argv, place, seconds=20.0, **more)  # type: ignore[arg-type]
    return await ProcessSandbox(private_mounts=False, hidden=hidden).run(command)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file that everybody may read, by its mode."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o5 != 0o5 and folder.is_relative_to("/tmp"):
            folder.chmod(0o755)
    file = tmp_path / "test_solution.py"
    file.write_text("the original tests")
    return file


async def test_a_command_has_its_own_folders_and_the_system(place: Place) -> None:
    done = await run(place, 'echo a > a && cat a && ls /usr/bin > "$TMPDIR/b" && echo x > /dev/null && echo ok')
    assert done.stdout == b"a\nok\n", done.stderr


async def test_it_cannot_read_what_is_not_its_own(place: Place, outside: Path) -> None:
    done = await run(place, f"cat {outside}; ls {outside.parent}; echo y > {outside.parent}/b; echo end")
    assert done.stdout == b"end\n"
    assert done.stderr.count(b"ermission denied") == 3
    assert b"the original tests" in (await run(place, f"cat {outside}", readable=(outside,))).stdout


async def test_what_is_hidden_in_a_readable_folder_stays_hidden(place: Place, outside: Path) -> None:
    (outside.parent / "package" / "inner").mkdir(parents=True)
    (outside.parent / "package" / "inner" / "reference.py").write_text("the answer")
    (outside.parent / "package" / "shown.py").write_text("shown")
    (outside.parent / "link").symlink_to("package")
    for path in outside.parent.rglob("*"):
        path.chmod(0o755)
    hidden = outside.parent / "package" / "inner"
    script = f"cat {outside} {outside.parent}/package/shown.py; cat {hidden}/reference.py"
    script += f"; cat {outside.parent}/link/inner/reference.py; ls {outside.parent}/package"
    done = await run(place, script, readable=(outside.parent,), hidden=(hidden,))
    assert done.stdout == b"the original testsshowninner\nshown.py\n"
    assert done.stderr.count(b"ermission denied") == 2


async def test_it_has_the_network_and_no_abstract_sockets_of_others(place: Place) -> None:
    python = shutil.which("python3", path="/usr/bin")
    if python is None:
        pytest.skip("needs /usr/bin/python3: apt-get install python3")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        name = f"\0bakeoff-{server.getsockname()[1]}"
        abstract.bind(name)
        abstract.listen()
        (place.work / "try.py").write_text(
            "import socket\n"
            f"for kind, to in ((socket.AF_INET, {server.getsockname()!r}), (socket.AF_UNIX, {name!r})):\n"
            "    try: socket.socket(kind).connect(to)\n"
            "    except OSError as problem: print(type(problem).__name__)\n"
            "    else: print('connected')\n"
        )
        done = await run(place, f"{python} try.py")
    assert done.stdout.split() == [b"connected", b"PermissionError"]


def test_everything_that_is_given_is_there_once_and_the_package_is_not(place: Place) -> None:
    access = allowed_access(Command(("true",), place, seconds=1.0), [Path("/usr/lib")])
    assert "/usr/lib" not in access["readable"]
    assert "/usr/bin" in access["readable"]
    assert "/usr" in access["listed"]
