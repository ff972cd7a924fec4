"""A Python that has imported all of Bakeoff and forks for each command; `warm_bakeoff.py` tells it what to do.

Most of the time of a short command goes into its imports. A forked process is the command's own in all that a test can
see: its folder, environment, arguments, streams, signals and end. Coverage is measured in each of them.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import socket
import sys
import threading
import traceback
import types
from pathlib import Path
from typing import Any

import coverage

# Programs of their own, which act as soon as they are imported, and the part that needs a test session around it.
NOT_IMPORTED = ("__main__", "bundled", "forward", "pytest_harness", "doors.pytest", "supervisor")
# What commands import when they need it, and what takes them a second: the statistics of almost every report.
IMPORTED_LATE = ("scipy.optimize", "scipy.sparse.csgraph", "scipy.special", "scipy.stats")


def import_everything() -> None:
    import bakeoff

    for module in pkgutil.walk_packages(bakeoff.__path__, "bakeoff."):
        if not any(part in module.name for part in NOT_IMPORTED):
            importlib.import_module(module.name)
    # Its threads would not live on in a fork.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in IMPORTED_LATE:
        importlib.import_module(name)
    # What is here now is garbage to nobody: the children need not look at it again.
    gc.collect()
    gc.freeze()


def connections(listener: socket.socket) -> socket.socket:
    """Make the imports on the first call, and fork for each. Only the children return, each with its connection."""
    watching = coverage.Coverage.current()
    imported = False
    while True:
        called, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in called:
            with contextlib.suppress(ChildProcessError):
                while True:
                    os.wait()
            os._exit(0)
        connection, _ = listener.accept()
        if not imported:
            imported = True
            import_everything()
            if watching is not None:
                watching.stop()
                watching.save()
                atexit.unregister(watching._atexit)
        if os.fork() == 0:
            listener.close()
            return connection
        connection.close()


def requests(connection: socket.socket) -> Any:
    """Fork for each request, and tell its process, then its exit code and processor seconds.

    Only the children return, each with its request.
    """
    while True:
        text, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        if not text:
            os._exit(0)
        process = os.fork()
        if process == 0:
            connection.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            return json.loads(text)
        for stream in streams:
            os.close(stream)
        connection.send(json.dumps(process).encode())
        _, status, usage = os.wait4(process, 0)
        seconds = usage.ru_utime + usage.ru_stime
        connection.send(json.dumps([os.waitstatus_to_exitcode(status), seconds]).encode())


def run_command(words: list[str], folder: str, environment: dict[str, str]) -> int:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    coverage.process_startup(force=True)
    if encoding := environment.get("PYTHONIOENCODING"):
        sys.stdout.reconfigure(encoding=encoding)  # type: ignore[union-attr]
        sys.stderr.reconfigure(encoding=encoding)  # type: ignore[union-attr]
    sys.argv = words
    try:
        run_script(words[0]) if words[0].endswith(".py") else run_bakeoff()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    except Exception:  # noqa: BLE001 - shown as the interpreter would show it
        traceback.print_exc()
        return 1
    return 0


def run_bakeoff() -> None:
    from bakeoff.cli.main import main

    main()


def run_script(path: str) -> None:
    """Run a script as `python path` does."""
    sys.path[0] = str(Path(path).parent)
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__ = path
    exec(compile(Path(path).read_bytes(), path, "exec"), main.__dict__)


def end_as_python_does(code: int) -> None:
    """All but the taking apart of two thousand modules."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.path[0] = str(Path(sys.executable).parent)
    end_as_python_does(run_command(*requests(connections(socket.socket(fileno=int(sys.argv[1]))))))
