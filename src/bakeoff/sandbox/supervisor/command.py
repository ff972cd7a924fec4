"""Supervise one command from its order to its report."""

import fcntl
import json
import os
import select
import signal
import time
from typing import Any, NoReturn

from .cgroups import Cgroup, find_parents
from .confinement import Order, SetUpFailed, can_own_ipc, start
from .ending import Reaper, end_everything, run_epilogue, sweep
from .kernel import LINUX, PR_SET_CHILD_SUBREAPER, prctl, processes_of
from .limits import CgroupWatch, ConnectionWatch, DiskWatch, MemoryWatch

Watch = MemoryWatch | CgroupWatch | ConnectionWatch


def supervise(control: int) -> NoReturn:
    """Read the order from the control socket, send our pid, and at the end send the report.

    Each message is a JSON line. If Bakeoff writes to the socket or closes it, even by dying, the
    command ends early. The report repeats the order's secret, so that nobody can forge it.
    """
    os.set_inheritable(control, False)
    send(control, {"pid": os.getpid()})
    received = b""
    while not received.endswith(b"\n"):
        if not (chunk := os.read(control, 1 << 16)):
            os._exit(0)  # Bakeoff ended before it gave an order
        received += chunk
    order: Order = json.loads(received)
    try:
        if "sweep" in order:
            report = sweep(order["sweep"])
        elif "probe" in order:  # find our rights, and remove groups of killed supervisors
            report = {"cgroup": find_parents(), "own_ipc": LINUX and can_own_ipc()}
        else:
            report = carry_out(order, control)
    except SetUpFailed as problem:
        report = {"problem": str(problem)}
    send(control, {**report, "secret": order["secret"]})
    os._exit(0)


def send(control: int, message: dict[str, Any]) -> None:
    try:
        os.write(control, json.dumps(message).encode() + b"\n")
    except OSError:
        pass  # nobody reads it


def carry_out(order: Order, control: int) -> dict[str, Any]:
    """Run an order, if possible in its own control group. Return the report without its secret."""
    if LINUX:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    if order["uid"] is not None:
        hold(order["root"])
    reaper = Reaper()
    if order["uid"] is None and "RLIMIT_NPROC" in order["rlimits"] and not order["own_ipc"]:
        order["rlimits"]["RLIMIT_NPROC"] += processes_of(os.getuid())  # namespaces count separately
    cgroup = Cgroup(**order["cgroup"]) if order["cgroup"] is not None else None
    try:
        if cgroup is not None:
            try:
                cgroup.make(order["memory"], order["processes"])
            except OSError as problem:
                raise SetUpFailed(f"cannot make a control group: {problem}") from problem
        return carry_out_in(cgroup, order, control, reaper)
    finally:
        if cgroup is not None:
            cgroup.remove()


def hold(root: str) -> None:
    """Lock a place, so that its user is not leased again before we have ended its processes."""
    try:
        fcntl.flock(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as problem:
        raise SetUpFailed(f"its place {root} is gone or being removed: {problem.strerror}") from problem


def carry_out_in(cgroup: Cgroup | None, order: Order, control: int, reaper: Reaper) -> dict[str, Any]:
    """Start the command, watch its limits, end all its processes, and return the report."""
    # A pipe for progress reports of a wrapper such as bubblewrap, named in the argv.
    status, writing = os.pipe()
    os.set_inheritable(writing, order["status_word"] in order["argv"])
    order["argv"] = [str(writing) if word == order["status_word"] else word for word in order["argv"]]
    offer_filter(order)
    started = time.monotonic()
    reaper.command, ipc_lists = start(order, control, cgroup)
    for descriptor in (0, 1, 2):  # only the command holds the streams, so that they end with it
        os.close(descriptor)
    why = watch(order, control, reaper, watch_of_memory(order, cgroup, ipc_lists), started)
    seconds = time.monotonic() - started
    clean = end_everything(order["uid"], reaper)
    report = {
        "stop": why,
        "seconds": seconds,
        "exit_code": reaper.exit_code,
        "clean": clean,
        "status": os.read(status, 4096).decode(errors="replace") if select.select([status], [], [], 0)[0] else "",
    }
    if order["epilogue"]:
        for _ in range(3):  # subprocess needs the standard descriptors to be open
            os.open(os.devnull, os.O_RDWR)
        signal.set_wakeup_fd(-1)
        report["epilogue"] = run_epilogue(order["epilogue"], order["env"])
    return report


def watch_of_memory(order: Order, cgroup: Cgroup | None, ipc_lists: list[int]) -> Watch | None:
    """Return the memory watch for a command on this machine; None if none is needed."""
    if cgroup is not None:
        return CgroupWatch(cgroup)
    if order["owner"] is not None:
        return ConnectionWatch(order["memory"], order["owner"])
    return MemoryWatch(order["memory"], ipc_lists) if order["memory"] else None


def offer_filter(order: Order) -> None:
    """Pass the filter to a wrapper such as bubblewrap, which cannot run under it itself."""
    if order["filter_word"] not in order["argv"]:
        return
    reading, writing = os.pipe()
    os.write(writing, bytes.fromhex(order["filter"]))
    os.close(writing)
    os.set_inheritable(reading, True)
    order["argv"] = [str(reading) if word == order["filter_word"] else word for word in order["argv"]]
    order["filter"] = ""


def watch(order: Order, control: int, reaper: Reaper, memory: Watch | None, started: float) -> str:
    """Wait until the command ends ('exited') or must be ended, and return the reason."""
    deadline = started + order["seconds"]
    disk = DiskWatch(order["watched"], order["owner"], order["disk"])
    poller = select.poll()
    poller.register(control, select.POLLIN)
    poller.register(reaper.woken, select.POLLIN)
    while True:
        now = time.monotonic()
        if now >= deadline:
            return "timeout"
        due = min(deadline, disk.due, memory.due if memory else deadline)
        ready = poller.poll(1000 * max(due - now, 0.0))
        if any(descriptor == control for descriptor, _ in ready):
            return os.read(control, 64).decode().strip() or "cancelled"
        reaper.collect()
        if reaper.exit_code is not None:
            if memory and memory.over_at_the_end(reaper.peak_bytes):
                return "memory"
            return "disk" if disk.over_at_the_end() else "exited"
        now = time.monotonic()
        if memory and memory.over(now):
            return "memory"
        if disk.over(now):
            return "disk"
