"""Test what every sandbox promises about one command: its output, its end, and the end of everything it started."""

import asyncio
import contextlib
import json
import os
import pwd
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from bakeoff.errors import InfraError
from bakeoff.plan import Limits
from bakeoff.protocols import Command, CommandResult, Place, Sandbox
from bakeoff.sandbox import choose_sandbox, inside, open_place, put_files
from bakeoff.sandbox.places import LEASES, lease_user, take_lease
from bakeoff.sandbox.supervisor.kernel import children_of
from bakeoff.sandbox.supervisor_client import open_pipes

pytestmark = pytest.mark.journey

SANDBOXES = ("process", "bwrap", "docker")
every_sandbox = pytest.mark.parametrize("sandbox_kind", SANDBOXES)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a user of its own for every place")
SandboxOn = Callable[[str], Sandbox]


def python(place: Place, script: str, *, seconds: float = 20.0, **settings: object) -> Command:
    return Command(("python3", "-c", textwrap.dedent(script)), place, seconds, **settings)  # type: ignore[arg-type]


def users_processes(place: Place) -> list[int]:
    """Those that still run; a dead one may wait a while for init to take note."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            status = (process / "status").read_text()
        except OSError:
            continue
        if f"Uid:\t{place.uid}\t" in status and "State:\tZ" not in status:
            found.append(int(process.name))
    return found


def wait_for_end_of(pid: int, seconds: float = 10.0) -> bool:
    """Tell whether the process ended in that time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


@every_sandbox
async def test_the_user_of_a_command_has_a_name(sandbox_kind: str, sandbox_on: SandboxOn, place: Place) -> None:
    """Node's `os.userInfo()` raises without one, and with it some agents end before they begin."""
    yours = sandbox_kind == "process" and os.geteuid() != 0
    name = pwd.getpwuid(os.getuid()).pw_name if yours else "trial"
    sandbox = sandbox_on(sandbox_kind)
    script = """
        import grp, os, pwd
        print(pwd.getpwuid(os.getuid()).pw_name, bool(grp.getgrgid(os.getgid()).gr_name))
        try:
            open("/etc/passwd", "a")
        except OSError as error:
            print("refused")
    """
    done = await sandbox.run(python(place, script))
    assert done.stdout.decode() == f"{name} True\nrefused\n", done.stderr


@every_sandbox
async def test_input_goes_in_and_both_outputs_come_back_apart(
    sandbox_kind: str, sandbox_on: SandboxOn, place: Place
) -> None:
    script = "import sys; text = sys.stdin.read(); print(len(text)); print(text[:3], file=sys.stderr); sys.exit(3)"
    completed = await sandbox_on(sandbox_kind).run(python(place, script, stdin=b"abc" * 500_000))

    assert (completed.exit_code, completed.stop, completed.ok) == (3, "exited", False)
    assert (completed.stdout, completed.stderr) == (b"1500000\n", b"abc\n")


@every_sandbox
async def test_input_that_nobody_reads_does_not_hold_up_the_end(
    sandbox_kind: str, sandbox_on: SandboxOn, place: Place
) -> None:
    completed = await sandbox_on(sandbox_kind).run(python(place, "print('done')", stdin=b"x" * 1_000_000))
    assert (completed.ok, completed.stdout) == (True, b"done\n")


@every_sandbox
async def test_output_up_to_the_cap_is_kept_whole_and_one_byte_more_ends_the_command(
    sandbox_kind: str, sandbox_on: SandboxOn, place: Place
) -> None:
    sandbox = sandbox_on(sandbox_kind)
    limits = Limits(output_kb=100)
    print_bytes = "import sys; sys.stdout.write('x' * {})"

    full = await sandbox.run(python(place, print_bytes.format(102_400), limits=limits))
    over = await sandbox.run(python(place, print_bytes.format(102_401), limits=limits))

    assert (full.ok, len(full.stdout)) == (True, 102_400)
    assert (over.ok, over.stop, len(over.stdout)) == (False, "output", 102_400)


@every_sandbox
async def test_a_command_works_in_its_folders_and_is_told_where_they_are(
    sandbox_kind: str, sandbox_on: SandboxOn, place: Place
) -> None:
    sandbox = sandbox_on(sandbox_kind)
    put_files(place, {"given/file.txt": b"given"})
    script = """
        import json, os, pathlib, tempfile
        pathlib.Path("given/file.txt").write_text("changed")
        pathlib.Path.home().joinpath("dotfile").write_text("x")
        tempfile.NamedTemporaryFile(delete=False).close()
        print(json.dumps([os.getcwd(), os.environ["HOME"], os.environ["TMPDIR"], os.environ["ADDED"]]))
    """
    completed = await sandbox.run(python(place, script, env={"ADDED": "by the case"}))

    there = inside(sandbox, place)
    assert json.loads(completed.stdout) == [str(there.work), str(there.home), str(there.tmp), "by the case"]
    assert (place.work / "given" / "file.txt").read_text() == "changed"
    assert (place.home / "dotfile").exists()
    assert len(list(place.tmp.glob("tmp*"))) == 1


@every_sandbox
async def test_a_program_that_is_not_there_is_exit_127_with_a_reason(
    sandbox_kind: str, sandbox_on: SandboxOn, place: Place
) -> None:
    completed = await sandbox_on(sandbox_kind).run(Command(("no-such-program",), place, 10.0))
    assert (completed.exit_code, completed.stop) == (127, "exited")
    assert b"no-such-program" in completed.stderr
    assert not completed.ok


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
async def test_a_signal_is_a_negative_exit_code(sandbox_kind: str, sandbox_on: SandboxOn, place: Place) -> None:
    completed = await sandbox_on(sandbox_kind).run(python(place, "import os; os.kill(os.getpid(), 15)"))
    assert (completed.exit_code, completed.stop) == (-15, "exited")


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
async def test_node_runs_where_it_is_installed(sandbox_kind: str, sandbox_on: SandboxOn, place: Place) -> None:
    if not shutil.which("node"):
        pytest.skip("needs node: apt-get install nodejs")
    completed = await sandbox_on(sandbox_kind).run(Command(("node", "-p", "1 + 1"), place, 20.0, Limits(memory_mb=512)))
    assert completed.stdout == b"2\n", completed.stderr


@every_sandbox
async def test_a_readable_path_is_seen_and_cannot_be_written(
    sandbox_kind: str, sandbox_on: SandboxOn, place: Place, tmp_path: Path
) -> None:
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "data").write_text("of the toolchain")
    (tmp_path / "tool").chmod(0o777)
    script = f"""
        import pathlib
        folder = pathlib.Path({str(tmp_path / "tool")!r})
        print((folder / "data").read_text())
        (folder / "new").write_text("x")
    """
    completed = await sandbox_on(sandbox_kind).run(python(place, script, readable=(tmp_path / "tool",)))

    assert completed.stdout == b"of the toolchain\n"
    if sandbox_kind != "process" or os.geteuid() == 0:
        assert b"Read-only file system" in completed.stderr


async def test_a_bubblewrap_that_fails_before_the_command_is_not_the_commands_failure(
    sandbox_on: SandboxOn, place: Place
) -> None:
    sandbox = sandbox_on("bwrap")
    place.home.rmdir()
    with pytest.raises(InfraError, match=r"did not start the command|was not started"):
        await sandbox.run(python(place, "pass"))


@pytest.mark.parametrize("network", [True, False])
@pytest.mark.parametrize("sandbox_kind", ["bwrap", "docker"])
async def test_loopback_is_there_when_the_command_may_have_a_network(
    sandbox_kind: str, network: bool, sandbox_on: SandboxOn, place: Place
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)"
        completed = await sandbox_on(sandbox_kind).run(python(place, script, network=network))
    assert completed.ok is network, completed.stderr


@every_sandbox
async def test_cancelling_ends_the_whole_tree_at_once(sandbox_kind: str, sandbox_on: SandboxOn, place: Place) -> None:
    script = """
        import os, pathlib, time
        child = os.fork()
        pathlib.Path("started" if child else "child").touch()
        time.sleep(600)
    """
    running = asyncio.create_task(sandbox_on(sandbox_kind).run(python(place, script, seconds=600.0)))
    async with asyncio.timeout(20):
        while not ((place.work / "started").exists() and (place.work / "child").exists()):
            await asyncio.sleep(0.01)

    running.cancel()
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await running

    assert place.uid is None or users_processes(place) == []


@every_sandbox
async def test_a_second_command_in_a_busy_place_is_refused(
    sandbox_kind: str, sandbox_on: SandboxOn, place: Place
) -> None:
    sandbox = sandbox_on(sandbox_kind)
    running = asyncio.create_task(sandbox.run(python(place, "import time; time.sleep(600)", seconds=600.0)))
    await asyncio.sleep(0)  # the first step of the task takes the place
    with pytest.raises(InfraError, match="already running"):
        await sandbox.run(python(place, "pass"))
    running.cancel()
    await asyncio.wait([running])


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
async def test_memory_that_workers_share_counts_once(sandbox_kind: str, sandbox_on: SandboxOn, place: Place) -> None:
    script = """
        import os, time
        kept = b"x" * (60 << 20)
        os.fork(), os.fork()
        time.sleep(0.3)
    """
    completed = await sandbox_on(sandbox_kind).run(python(place, script, limits=Limits(memory_mb=128)))
    assert completed.stop == "exited", completed


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
async def test_many_processes_that_fill_memory_together_are_ended(
    sandbox_kind: str, sandbox_on: SandboxOn, place: Place
) -> None:
    script = """
        import os, time
        os.fork(), os.fork()
        kept = bytearray(b"x") * (50 << 20)
        time.sleep(600)
    """
    completed = await sandbox_on(sandbox_kind).run(python(place, script, limits=Limits(memory_mb=128)))
    assert completed.stop == "memory"


@every_sandbox
async def test_a_tree_nested_beyond_every_path_length_is_ended_and_removed(
    sandbox_kind: str, sandbox_on: SandboxOn
) -> None:
    script = """
        import os, time
        for _ in range(3000):
            os.mkdir("deeper"); os.chdir("deeper")
        open("file", "w").write("x")
        time.sleep(600)
    """
    async with open_place() as place:
        completed = await sandbox_on(sandbox_kind).run(python(place, script))
    assert completed.stop == "disk"
    assert not place.work.exists()


KILLED_BAKEOFF = """
import asyncio, sys
from bakeoff.protocols import Command
from bakeoff.sandbox import choose_sandbox, open_place

async def main():
    sandbox = choose_sandbox(sys.argv[1])
    async with open_place() as place:
        print(place.work, flush=True)
        script = "import os, pathlib, time; pathlib.Path('started').touch(); os.fork(); time.sleep(600)"
        await sandbox.run(Command(("python3", "-c", script), place, 600.0))

asyncio.run(main())
"""


@contextlib.asynccontextmanager
async def bakeoff_with_a_command(sandbox_kind: str) -> AsyncIterator[tuple["subprocess.Popen[str]", Path]]:
    """Start a Bakeoff process, and yield it with its work folder once its command runs."""
    argv = [sys.executable, "-c", KILLED_BAKEOFF, sandbox_kind]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as bakeoff:
        assert bakeoff.stdout is not None
        work = Path(bakeoff.stdout.readline().strip())
        async with asyncio.timeout(20):
            while not (work / "started").exists():
                await asyncio.sleep(0.01)
        yield bakeoff, work


@needs_root
@every_sandbox
async def test_killing_bakeoff_ends_its_commands_and_the_next_place_clears_up(
    sandbox_kind: str, sandbox_on: SandboxOn
) -> None:
    sandbox_on(sandbox_kind)
    async with bakeoff_with_a_command(sandbox_kind) as (bakeoff, work):
        uid = work.stat().st_uid
        left = users_processes(Place(work, work, work, uid))
        bakeoff.send_signal(signal.SIGKILL)

    assert left
    assert all(wait_for_end_of(pid) for pid in left)
    with contextlib.ExitStack() as leases:  # the lock died with its holder, so the same user comes up again
        while work.exists():
            lease = lease_user()
            leases.callback(lease.close)
            if lease.uid > uid:  # another process of ours has that user by now, and is clearing up
                break
        async with asyncio.timeout(20):
            while work.exists():
                await asyncio.sleep(0.01)


def supervisors_of(pid: int) -> list[int]:
    """Return the supervisors of a Bakeoff process: the children of its fork server."""
    servers = [child for child in children_of(pid) if b"fork_server" in Path(f"/proc/{child}/cmdline").read_bytes()]
    return [supervisor for server in servers for supervisor in children_of(server)]


@needs_root
@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
async def test_a_user_is_not_given_out_again_while_a_supervisor_may_still_kill_its_processes(
    sandbox_kind: str, sandbox_on: SandboxOn
) -> None:
    sandbox_on(sandbox_kind)
    async with bakeoff_with_a_command(sandbox_kind) as (bakeoff, work):
        uid = work.stat().st_uid
        [supervisor] = supervisors_of(bakeoff.pid)
        os.kill(supervisor, signal.SIGSTOP)
        bakeoff.send_signal(signal.SIGKILL)

    assert take_lease(uid, LEASES) is None, "its supervisor has yet to end what it runs"
    os.kill(supervisor, signal.SIGCONT)
    async with asyncio.timeout(20):
        while (lease := take_lease(uid, LEASES)) is None:
            await asyncio.sleep(0.01)
    lease.close()
    assert not work.exists()


@needs_root
@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
async def test_killing_the_supervisor_is_an_infrastructure_error_and_leaves_nothing(
    sandbox_kind: str, sandbox_on: SandboxOn, place: Place
) -> None:
    script = "import os, pathlib, time; pathlib.Path('started').touch(); time.sleep(600)"
    running = asyncio.create_task(sandbox_on(sandbox_kind).run(python(place, script, seconds=600.0)))
    async with asyncio.timeout(20):
        while not (place.work / "started").exists():
            await asyncio.sleep(0.01)
    for supervisor in supervisors_of(os.getpid()):
        os.kill(supervisor, signal.SIGKILL)

    with pytest.raises(InfraError, match="killed from outside"):
        await running
    assert users_processes(place) == []


@needs_root
async def test_hidden_folders_are_empty_in_the_process_sandbox(place: Place) -> None:
    project = Path(__file__).parents[2]
    sandbox = choose_sandbox("process", hidden=[project])
    completed = await sandbox.run(python(place, f"import os; print(os.path.exists({__file__!r}))"))
    assert completed.stdout == b"False\n", completed.stderr


@pytest.mark.parametrize("kind", ["process", "bwrap"])
async def test_no_installed_copy_of_ours_is_shown(
    kind: str, sandbox_on: SandboxOn, place: Place, tmp_path: Path
) -> None:
    """Another environment, such as an agent's, may hold a copy of its own, with all bundled references."""
    packages = tmp_path / "real" / "lib" / "python3.12" / "site-packages"
    for name in ("bakeoff/bundled", "other"):
        (packages / name).mkdir(parents=True)
        (packages / name / "reference.py").write_text("the answer")
    (tmp_path / "real" / "lib64").symlink_to("lib")
    link = tmp_path / "link"
    link.symlink_to("real")
    ways = [root / lib for root in (link, tmp_path / "real") for lib in ("lib", "lib64")]
    script = f"""
        import os
        for way in {[str(way / "python3.12/site-packages") for way in ways]}:
            print(*(os.path.exists(f"{{way}}/{{name}}/reference.py") for name in ("bakeoff/bundled", "other")))
    """
    completed = await sandbox_on(kind).run(python(place, script, readable=(link,)))
    assert completed.stdout.splitlines() == [b"False True"] * 4, completed.stderr


@pytest.mark.parametrize("kind", ["process", "bwrap"])
async def test_links_below_the_temporary_folder_are_shown_to_every_command_of_a_place(
    kind: str, sandbox_on: SandboxOn, place: Place
) -> None:
    with tempfile.TemporaryDirectory(prefix="bakeoff-test-", dir="/tmp") as made:
        (Path(made) / "lib").mkdir(parents=True)
        (Path(made) / "lib" / "file.txt").write_text("shown")
        (Path(made) / "lib64").symlink_to("lib")
        Path(made).chmod(0o755)
        beside = Path(f"{made}-link")
        beside.symlink_to(Path(made) / "lib")
        try:
            for link in (Path(made) / "lib64", beside):
                command = python(place, f"print(open('{link}/file.txt').read())", readable=(link,))
                runs = [await sandbox_on(kind).run(command) for _ in range(2)]
                assert [each.stdout for each in runs] == [b"shown\n"] * 2, runs
        finally:
            beside.unlink()


async def test_the_temporary_folder_itself_can_be_shared_in_bubblewrap(
    sandbox_on: SandboxOn, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/root")  # a sandbox shows no folder in which the home lies
    with tempfile.NamedTemporaryFile(dir="/tmp") as file:
        Path(file.name).chmod(0o644)
        command = python(place, f"print(open({file.name!r}).read() == '')", shared={Path("/tmp"): False})
        completed = await sandbox_on("bwrap").run(command)
    assert completed.stdout == b"True\n", completed.stderr


@needs_root
async def test_the_system_is_read_only_and_scratch_is_private_in_the_process_sandbox(place: Place) -> None:
    script = """
        import os
        for path in ("/etc/x", "/var/tmp/x", "/dev/shm/x", "/usr/x"):
            try:
                open(path, "w").close()
                print(path)
            except OSError:
                pass
    """
    completed = await choose_sandbox("process").run(python(place, script))
    assert completed.stdout.split() == [b"/var/tmp/x", b"/dev/shm/x"]
    assert not Path("/var/tmp/x").exists()
    assert not Path("/dev/shm/x").exists()


@needs_root
async def test_root_never_runs_a_subject_as_itself(tmp_path: Path) -> None:
    unowned = Place(tmp_path, tmp_path, tmp_path)
    for sandbox_kind in ("process", "bwrap"):
        if sandbox_kind == "bwrap" and not shutil.which("bwrap"):
            continue
        with pytest.raises(InfraError, match="no user of its own"):
            await choose_sandbox(sandbox_kind).run(python(unowned, "pass"))


ORDINARY_USER = """
import asyncio, json, os, tempfile
from pathlib import Path
from bakeoff.plan import Limits
from bakeoff.protocols import Command
from bakeoff.sandbox import available, choose_sandbox, open_place

os.environ["OPENAI_API_KEY"] = "sk-never"
ATTACKS = {
    "daemon": '''import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("daemon", "w").write(str(os.getpid()))
        [os.close(n) for n in (0, 1, 2)]
        time.sleep(600)
    os._exit(0)
while not (os.path.exists("daemon") and open("daemon").read()):
    time.sleep(0.001)
''',
    "memory": "kept = []\\nwhile True: kept.append(bytearray(b'x') * (4 << 20))",
    "disk": "with open('big', 'wb') as f:\\n while True: f.write(b'x' * (1 << 20))",
    "key": '''import os
try:
    print("sk-never" in open(f"/proc/{PARENT}/environ").read())
except OSError:
    print("closed")
''',
    "unreadable": "import os; os.makedirs('a/b'); os.chmod('a', 0)",
    "supervisor": "import os; print('so far', flush=True); os.kill(os.getppid(), 9)",
}

async def main():
    sandbox = choose_sandbox("process")
    said = {"uid": os.getuid()}
    left = Path(tempfile.mkdtemp(prefix="bakeoff-place-"))
    (left / "held").touch()  # as a Bakeoff leaves it that is killed
    os.utime(left, (0, 0))
    for name, script in ATTACKS.items():
        async with open_place() as place:
            argv = ("python3", "-c", script.replace("PARENT", str(os.getpid())))
            done = await sandbox.run(Command(argv, place, 20.0, Limits(memory_mb=128, disk_mb=50)))
            said[name] = [done.stop, done.stdout.decode().strip()]
            if name == "daemon":
                said["daemon alive"] = Path("/proc", (place.work / "daemon").read_text()).exists()
        said[name].append(place.work.exists())
    said["left behind"] = left.exists()
    if any(status.name == "bwrap" and status.ok for status in available()):
        async with open_place() as place:
            script = "import os, socket; print(os.getcwd(), os.getuid(), os.listdir('/proc/1/task'))"
            done = await choose_sandbox("bwrap").run(Command(("python3", "-c", script), place, 20.0))
            said["bwrap"] = done.stdout.decode() + done.stderr.decode()
    print(json.dumps(said))

asyncio.run(main())
"""


@needs_root
async def test_an_ordinary_user_gets_the_process_sandbox_too(place: Place, tmp_path: Path) -> None:
    """Bakeoff itself runs here as an unprivileged user: inside the sandbox of the Bakeoff that runs this test."""
    package = tmp_path / "library" / "bakeoff"
    ours = Path(sys.modules["bakeoff"].__file__ or "").parent
    shutil.copytree(ours, package, ignore=shutil.ignore_patterns("bundled"))  # a copy with it is hidden
    command = python(
        place,
        ORDINARY_USER,
        seconds=60.0,
        env={"PYTHONPATH": str(package.parent)},
        readable=(package.parent,),
        limits=Limits(memory_mb=2000),
    )
    completed: CommandResult = await choose_sandbox("process").run(command)

    assert completed.ok, completed.stderr.decode()
    said = json.loads(completed.stdout)
    assert said.pop("bwrap", "/workspace 1000 ['1']\n") == "/workspace 1000 ['1']\n"
    # A kernel whose Landlock knows signals does not let it kill its supervisor.
    assert said.pop("supervisor") in (["killed", "so far", False], ["exited", "so far", False])
    assert said == {
        "uid": place.uid,
        "daemon": ["exited", "", False],
        "daemon alive": False,
        "memory": ["memory", "", False],
        "disk": ["disk", "", False],
        "key": ["exited", "closed", False],
        "unreadable": ["exited", "", False],
        "left behind": False,
    }


def test_pipes_are_opened_all_or_none() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    fillers = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (fillers[0] + 20, limits[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                fillers.append(os.dup(0))
        for _ in range(3):
            os.close(fillers.pop())
        with pytest.raises(OSError, match="Too many open files"):
            open_pipes(3)
        fillers += [os.dup(0) for _ in range(3)]  # none of the three is lost
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for descriptor in fillers:
            os.close(descriptor)
