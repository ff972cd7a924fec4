"""End a command with all processes that it started, and find out how it ended."""

import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any

from .kernel import LINUX, descendants, processes_of

KILL_SECONDS = 15.0  # only processes stuck in the kernel survive SIGKILL longer
EPILOGUE_PAUSE = 0.5  # for an engine that is still making a requested container


class ChildWatch:
    """Reaps ended children and calls `ended` for each. A pipe tells when there are any."""

    def __init__(self) -> None:
        self.woken, self.waker = os.pipe()
        os.set_blocking(self.woken, False)
        os.set_blocking(self.waker, False)
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def collect(self) -> bool:
        """Reap every child that has ended. Return True if no child is left."""
        try:
            os.read(self.woken, 4096)
        except BlockingIOError:
            pass
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            self.ended(pid, status, usage.ru_maxrss)

    def ended(self, pid: int, status: int, peak: int) -> None:
        """Handle the end of a child. `peak` is its peak memory, in the kernel's unit."""
        raise NotImplementedError


class Reaper(ChildWatch):
    """Reaps every child that ends, and remembers how the command itself ended."""

    def __init__(self) -> None:
        super().__init__()
        self.command = 0
        self.exit_code: int | None = None
        self.peak_bytes = 0

    def ended(self, pid: int, status: int, peak: int) -> None:
        if pid == self.command:
            self.exit_code = os.waitstatus_to_exitcode(status)
            self.peak_bytes = peak * (1024 if LINUX else 1)


def end_everything(uid: int | None, reaper: Reaper) -> bool:
    """Kill all processes of the command. Return False if one survives."""
    give_up = time.monotonic() + KILL_SECONDS
    poller = select.poll()
    poller.register(reaper.woken, select.POLLIN)
    while not reaper.collect():
        if time.monotonic() > give_up:
            return False
        if uid is not None:
            kill_all_of(uid)
        else:
            # Kill all descendants or, outside of Linux, the command's process group.
            targets: list[tuple[Callable[[int, int], None], int]] = [(os.kill, pid) for pid in descendants()]
            if not LINUX:
                targets = [(os.killpg, reaper.command)]
            for kill, target in targets:
                try:
                    kill(target, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    pass  # already gone
        poller.poll(5)
    return True


def kill_all_of(uid: int) -> None:
    """Kill all processes of a user at once, acting as that user, which even stops fork bombs."""
    helper = os.fork()
    if helper == 0:
        try:
            os.setgroups([])
            os.setregid(uid, uid)
            os.setreuid(uid, uid)
            os.kill(-1, signal.SIGKILL)
        except OSError:
            pass  # the user has no processes
        os._exit(0)
    os.waitpid(helper, 0)


def run_epilogue(commands: list[list[str]], env: dict[str, str]) -> list[str]:
    """Run the commands that clean up, such as removing a container, and return their output."""
    import subprocess  # slow to import, needed only for docker

    answers = []
    for argv in commands:
        try:
            done = subprocess.run(argv, env=env, capture_output=True, text=True, errors="replace", timeout=60)
            answers.append(done.stdout.strip() if done.returncode == 0 else "")
            if done.returncode != 0:
                time.sleep(EPILOGUE_PAUSE)
        except (OSError, subprocess.TimeoutExpired):
            answers.append("")
    return answers


def sweep(uid: int) -> dict[str, Any]:
    """End the processes that a killed supervisor could not end."""
    give_up = time.monotonic() + KILL_SECONDS
    while processes_of(uid) and time.monotonic() < give_up:
        kill_all_of(uid)
        time.sleep(0.002)  # init, now their parent, does not tell us
    return {"clean": not processes_of(uid)}
