"""A docker engine with an image of the system's own Python, for the tests and for `make hostile`."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

IMAGE = "bakeoff-sandbox-test:latest"
INTERPRETER = Path("/usr/bin/python3")


class NoEngine(Exception):
    """Raised if no docker engine can be used here. The message says what to install or to start."""


@contextlib.contextmanager
def engine_with_image() -> Iterator[str]:
    """Yield the address of an engine that has the image. One is started if none runs, and stopped by its pid."""
    for program in ("docker", "dockerd", INTERPRETER):
        if not shutil.which(program):
            raise NoEngine(f"needs {program}: apt-get install docker.io python3")
    with contextlib.ExitStack() as stack:
        address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
        if docker(address, "info").returncode != 0:
            if os.geteuid() != 0:
                raise NoEngine("needs a running docker engine that you may use: systemctl start docker")
            address = stack.enter_context(started_engine())
        image = docker(address, "import", "-", IMAGE, content=root_file_system())
        assert image.returncode == 0, image.stderr
        stack.callback(docker, address, "image", "rm", "--force", IMAGE)
        yield address


def docker(address: str, *words: str, content: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["docker", "--host", address, *words], input=content, capture_output=True, check=False)


@contextlib.contextmanager
def started_engine() -> Iterator[str]:
    root = Path(tempfile.mkdtemp(prefix="bd-"))  # short: a socket's path has room for 108 characters
    address = f"unix://{root}/socket"
    folders: list[str | Path] = ["--data-root", root / "data", "--exec-root", root / "exec", "--pidfile", root / "pid"]
    argv: list[str | Path] = ["dockerd", "--iptables=false", "--bridge=none", "--host", address, *folders]
    engine = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    assert engine.stderr is not None
    reader = threading.Thread(target=engine.stderr.read, daemon=True)
    try:
        said = list(until_listening(engine.stderr))
        if "API listen on" not in said[-1]:
            raise NoEngine(f"dockerd does not start here: {said[-1]}")
        reader.start()
        yield address
    finally:
        engine.terminate()
        engine.wait(60)
        if reader.ident:
            reader.join(10)
        engine.stderr.close()
        unmount_below(root)
        shutil.rmtree(root)


def unmount_below(root: Path) -> None:
    """An engine that gave a container the host's network leaves a mount behind."""
    for line in Path("/proc/mounts").read_text().splitlines():
        if line.split()[1].startswith(f"{root}/"):
            subprocess.run(["umount", line.split()[1]], check=True)


def until_listening(log: IO[bytes]) -> Iterator[str]:
    yield ""
    for line in log:
        yield line.decode(errors="replace")
        if b"API listen on" in line:
            return


def root_file_system() -> bytes:
    """The system's own Python and the libraries it loads, as an image to import: no registry is asked."""
    buffer = io.BytesIO()
    library = Path("/usr/lib") / INTERPRETER.resolve().name
    programs = [INTERPRETER.resolve(), Path("/bin/sh").resolve()]
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as archive:
        for program in programs:
            archive.add(program, arcname=str(program))
        for name, program in (("usr/bin/python3", programs[0]), ("bin/sh", programs[1])):
            archive.add(program, arcname=name)
        ctypes = (library / "lib-dynload").glob("_ctypes.*.so")  # with which tests of Python are graded
        for path in needed_libraries([*programs, *ctypes]):
            archive.add(path.resolve(), arcname=str(path))
        archive.add(library, filter=without_bulk)
    return buffer.getvalue()


def without_bulk(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    bulky = re.search(r"/(__pycache__|test|config-[^/]*|idlelib|lib2to3|tkinter|dist-packages|ensurepip)$", member.name)
    member.type = tarfile.REGTYPE if member.islnk() else member.type
    return None if bulky else member


def needed_libraries(programs: list[Path]) -> set[Path]:
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout
    return {Path(found) for found in re.findall(r"(?:=> |^\t)(/\S+) \(", listed, flags=re.MULTILINE)}
