"""Call a task in a process of its own (`isolate=True`), which is killed with all its children when its time is up, or
when this process is killed.

The process imports the file of the function and finds the function by its name; arguments and answer are copied.
"""

import asyncio
import importlib
import importlib.util
import inspect
import os
import pickle
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from bakeoff._kernel.environment import hide_our_memory
from bakeoff.doors.pytest.printing import is_kept
from bakeoff.errors import InfraError, SubjectError
from bakeoff.record import Transcript

_MAX_ANSWER_LENGTH = 64 * 1024 * 1024
# What pickle may raise.
_PICKLING = (pickle.PicklingError, AttributeError, TypeError, ValueError, RecursionError)


class IsolatedError(SubjectError):
    """A task raised in its own process. The message is the traceback from there."""


async def call_isolated(function: "partial[Any]") -> Transcript:
    """Call a function in another process, and return its answer as a transcript."""
    request = _request(function)
    with _printed_here() as stderr:
        return await _answered(request, stderr)


@contextmanager
def _printed_here() -> Iterator[IO[bytes] | None]:
    """Print what a process has written to a file, here in the context of its case; None if it may print itself."""
    if not is_kept():
        yield None
        return
    with tempfile.TemporaryFile() as file:
        try:
            yield file
        finally:
            file.seek(0)
            sys.stderr.write(file.read().decode(errors="replace"))


async def _answered(request: bytes, stderr: IO[bytes] | None) -> Transcript:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import sys; sys.path[:] = sys.argv[1:]; from bakeoff.doors.pytest.isolation import serve; serve()",
        *sys.path,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(request)  # and left open: its end tells the process that we were killed
        answer = await process.stdout.read()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its children too
        process.stdin.close()
        await process.wait()
    return _read(answer, process.returncode)


def _request(function: "partial[Any]") -> bytes:
    target = function.func
    name, module = getattr(target, "__qualname__", ""), getattr(target, "__module__", "")
    file = getattr(sys.modules.get(module), "__file__", None)
    if not name or "<" in name or file is None:
        raise InfraError(
            f"isolate=True: another process cannot find {name or target!r} by its name: "
            "define it at the top of a module",
            permanent=True,
        )
    try:
        arguments = pickle.dumps((function.args, function.keywords))
    except _PICKLING as error:
        raise InfraError(
            f"isolate=True: the arguments of {name} cannot be sent to another process: {error}", permanent=True
        ) from error
    return pickle.dumps((module, str(Path(file).absolute()), name, arguments))


def _read(answer: bytes, code: int | None) -> Transcript:
    kind, _, text = answer.partition(b"\n")
    if kind == b"answer":
        return Transcript.model_validate_json(text)
    if kind == b"infra":
        raise InfraError(text.decode(errors="replace"), permanent=True)
    if kind in (b"unusable", b"raised"):
        raise (SubjectError if kind == b"unusable" else IsolatedError)(text.decode(errors="replace"))
    raise SubjectError(f"the process of the task ended with exit code {code} before it answered")


def serve() -> None:
    """Call the requested function and write its answer. This is the main function of the child process."""
    hide_our_memory()
    answers = os.dup(1)
    os.dup2(2, 1)  # keep what the task prints apart from the answer
    request = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    _end_with(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    kind, text = _answer(request)
    with os.fdopen(answers, "wb") as file:
        file.write(kind + b"\n" + text[:_MAX_ANSWER_LENGTH])


def _end_with(other: int) -> None:
    """Kill this process and its children once the process at the other end of a pipe is gone."""

    def wait() -> None:
        os.read(other, 1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def _answer(request: tuple[str, str, str, bytes]) -> tuple[bytes, bytes]:
    from bakeoff.doors.pytest.transcripts import transcript_of
    from bakeoff.replay.process import replaying_as_inherited

    module, file, name, arguments = request
    try:
        function = _found(module, file, name)
        positional, named = pickle.loads(arguments)  # noqa: S301
    except (ImportError, AttributeError, SyntaxError, pickle.UnpicklingError) as error:
        return b"infra", f"isolate=True: another process cannot use {module}.{name}: {error}".encode()
    try:
        with replaying_as_inherited():
            answer = asyncio.run(_called(partial(function, *positional, **named)))
    except BaseException as error:  # noqa: BLE001 - told to the other process as text: not every error can be copied
        told = traceback.format_exception(type(error), error, _own_frames(error.__traceback__))
        return b"raised", "".join(told).encode(errors="replace")
    try:
        return b"answer", transcript_of(answer).model_dump_json(exclude_defaults=True).encode()
    except SubjectError as error:
        return b"unusable", str(error).encode(errors="replace")


async def _called(function: "partial[Any]") -> Any:
    from bakeoff._kernel.threads import call
    from bakeoff.doors.pytest.transcripts import joined

    answer = await call(function)
    return joined([piece async for piece in answer]) if inspect.isasyncgen(answer) else answer


def _own_frames(trace: Any) -> Any:
    """Leave out the frames that called the task."""
    outside = (Path(__file__).parents[2], Path(asyncio.__file__).parent)
    while trace.tb_next and any(Path(trace.tb_frame.f_code.co_filename).is_relative_to(path) for path in outside):
        trace = trace.tb_next
    return trace


def _found(module: str, file: str, name: str) -> Callable[..., Any]:
    from bakeoff.doors.pytest.suite import EvalSuite

    found: Any = _imported(module, file)
    for part in name.split("."):
        found = getattr(found, part)
    function: Callable[..., Any] = found._bakeoff.function if isinstance(found, EvalSuite) else found
    return function


def _imported(module: str, file: str) -> Any:
    """Import a module by its name if that gives the same file, as for an installed one; otherwise by the file."""
    if module != "__main__":
        with suppress(ImportError):
            found = importlib.import_module(module)
            if getattr(found, "__file__", None) and Path(str(found.__file__)).samefile(file):
                return found
    spec = importlib.util.spec_from_file_location(module, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} cannot be imported")
    made = importlib.util.module_from_spec(spec)
    sys.modules[module] = made
    spec.loader.exec_module(made)
    return made
