"""Places come with a user nobody else has, and go without a trace."""

import asyncio
import contextlib
import contextvars
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bakeoff._kernel.temporary import removing_beside
from bakeoff.errors import InfraError, SandboxMissing
from bakeoff.protocols import Place
from bakeoff.sandbox import hand_over, open_place, put_files
from bakeoff.sandbox.places import (
    UserLease,
    lease_user,
    remove_tree,
    reserved_users,
    sweep_leases,
    sweep_places,
    take_lease,
)

pytestmark = pytest.mark.full

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: users are leased by root only")


async def test_a_place_is_private_while_open_and_gone_afterwards() -> None:
    async with open_place() as place:
        folders = (place.work, place.home, place.tmp)
        assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700] * 3
        assert {folder.stat().st_uid for folder in folders} == {os.getuid() if place.uid is None else place.uid}
    assert not place.work.parent.exists()


@needs_root
async def test_places_that_are_open_together_never_share_a_user() -> None:
    async with open_place() as one, open_place() as two:
        assert one.uid != two.uid
        assert {one.uid, two.uid} <= set(reserved_users())


@needs_root
def test_a_user_held_by_another_process_is_not_given_out(tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from bakeoff.sandbox.places import lease_user
lease = lease_user(Path({str(tmp_path)!r}))
print(lease.uid, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        theirs = int(other.stdout.readline())
        ours = lease_user(tmp_path)
        assert ours.uid != theirs
        other.communicate()
    again = lease_user(tmp_path)
    assert again.uid == theirs
    ours.close()
    again.close()


def lease_last(folder: Path, count: int) -> list[UserLease]:
    """Lease the last users: leases in another folder keep no one from a user, and sweeping ends all that it runs."""
    leases = [take_lease(uid, folder) for uid in reserved_users()[-count:]]
    return [lease for lease in leases if lease is not None]


@needs_root
def test_what_a_crash_left_behind_is_removed_before_its_user_is_given_out_again(tmp_path: Path) -> None:
    left = tmp_path / "place"
    (left / "work").mkdir(parents=True)
    [lease] = lease_last(tmp_path, 1)
    lease.note(left)
    lease.close()

    [again] = lease_last(tmp_path, 1)
    again.close()

    assert not left.exists()


@needs_root
def test_the_next_process_removes_what_crashes_left_behind_for_all_users(tmp_path: Path) -> None:
    folder = tmp_path / "leases"
    folder.mkdir()
    leases = lease_last(folder, 3)
    places = [tmp_path / f"place-{number}" for number in range(3)]
    for lease, place in zip(leases, places, strict=True):
        place.mkdir()
        lease.note(place)
    for killed in leases[1:]:
        killed.close()

    sweep_leases(folder)

    assert [place.exists() for place in places] == [True, False, False], "the first is in use"
    leases[0].close()


@needs_root
def test_a_lock_folder_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SandboxMissing, match="cannot keep user locks"):
        lease_user(tmp_path / "file" / "leases")


def test_a_tree_too_deep_for_recursion_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    script = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"
    subprocess.run([sys.executable, "-c", script], cwd=root, check=True)
    remove_tree(root)
    assert not root.exists()


@needs_root
async def test_files_put_into_a_place_belong_to_its_user() -> None:
    async with open_place() as place:
        put_files(place, {"a/./b.txt": b"x"})
        assert (place.work / "a").stat().st_uid == (place.work / "a" / "b.txt").stat().st_uid == place.uid


async def test_files_are_never_put_through_a_link_that_the_subject_made(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.write_bytes(b"ours")
    async with open_place(tmp_path) as place:
        (place.work / "link").symlink_to(ours)
        (place.work / "twin").hardlink_to(ours)
        (place.work / "folder").symlink_to(tmp_path)
        put_files(place, {"link": b"theirs", "twin": b"theirs"})
        with pytest.raises(InfraError, match="'folder/ours' cannot be put into the work folder"):
            put_files(place, {"folder/ours": b"theirs"})
        assert (place.work / "link").read_bytes() == b"theirs"
    assert ours.read_bytes() == b"ours"


@needs_root
async def test_handing_over_leaves_links_as_they_are(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.touch()
    async with open_place(tmp_path) as place:
        (place.work / "link").symlink_to(ours)
        (place.work / "twin").hardlink_to(ours)
        (place.work / "file").touch()
        hand_over(place)
        assert (place.work / "file").stat().st_uid == place.uid
        assert ours.stat().st_uid == 0


@pytest.mark.parametrize("name", ["../outside", "/etc/evil", "a/../../b", "", "."])
def test_files_are_only_put_below_the_work_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="cannot be put into the work folder"):
        put_files(Place(tmp_path, tmp_path, tmp_path), {name: b"x"})


def test_without_a_user_there_is_nobody_to_hand_over_to(tmp_path: Path) -> None:
    owner = tmp_path.stat().st_uid
    hand_over(Place(tmp_path, tmp_path, tmp_path))
    assert tmp_path.stat().st_uid == owner


HOLDER = """
import sys
from pathlib import Path
from bakeoff._kernel.temporary import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_place_is_swept_only_when_its_process_is_gone_and_it_is_not_new(tmp_path: Path) -> None:
    names = ("bakeoff-place-1", "bakeoff-place-2", "bakeoff-place-3", "x")
    ours, kept, fresh, other = (tmp_path / name for name in names)
    for folder in (ours, kept, fresh, other):
        folder.mkdir()
        (folder / "work").mkdir()
    for folder in (fresh, other):
        (folder / "held").touch()
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDER, ours], stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        for folder in (ours, kept, other):
            os.utime(folder, (0, 0))
        sweep_places(tmp_path)
        assert ours.exists()
        holder.kill()
    sweep_places.cache_clear()
    sweep_places(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bakeoff-place-2", "bakeoff-place-3", "x"]


async def test_a_place_that_is_kept_is_never_swept(tmp_path: Path) -> None:
    async with open_place(tmp_path, keep=True) as place:
        pass
    os.utime(place.work.parent, (0, 0))
    sweep_places.cache_clear()
    sweep_places(tmp_path)
    assert place.work.exists()


@needs_root
async def test_a_cancelled_removal_changes_no_file_that_is_opened_meanwhile(tmp_path: Path) -> None:
    """Its lock file was closed too early, and the number of its descriptor belonged to another file by then."""
    entered = asyncio.Event()

    async def use() -> Path:
        async with open_place(tmp_path) as place:
            for number in range(20_000):
                (place.work / str(number)).touch()
            entered.set()
            return place.work.parent

    using = asyncio.create_task(use())
    await entered.wait()
    await asyncio.sleep(0)  # the removal has begun
    using.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await using
    with contextlib.ExitStack() as opened:
        files = [tmp_path / f"precious {number}" for number in range(50)]
        for file in files:
            written = opened.enter_context(file.open("w"))
            written.write("precious")
            written.flush()
        await asyncio.get_running_loop().shutdown_default_executor()
        assert [file.read_text() for file in files] == ["precious"] * len(files)
    assert list(tmp_path.glob("bakeoff-place-*")) == []


async def test_a_place_that_outlives_the_removals_of_its_run_is_removed_all_the_same(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as outer:
        async with removing_beside(lambda: 5.0):
            context = contextvars.copy_context()
            place = await outer.enter_async_context(open_place(tmp_path))
        closing = asyncio.get_running_loop().create_task(outer.aclose(), context=context)
        await closing
    assert not place.work.parent.exists()
    assert list(tmp_path.iterdir()) == []


REMOVER = """
import asyncio, os, sys
from pathlib import Path
from bakeoff.sandbox import places

places.we_are_root = lambda: False

async def main():
    async with places.open_place(Path(sys.argv[1])) as place:
        (place.work / "large").mkdir()
        places.shutil.rmtree = lambda root: os._exit(9)  # killed at the first folder

asyncio.run(main())
"""


def test_a_removal_that_is_cut_short_is_finished_by_the_next_process_of_a_user(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", REMOVER, tmp_path], check=False).returncode == 9
    [left] = tmp_path.iterdir()
    os.utime(left, (0, 0))
    sweep_places.cache_clear()
    sweep_places(tmp_path)
    assert not left.exists()
