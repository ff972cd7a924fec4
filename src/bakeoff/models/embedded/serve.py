"""The server's own process: `python -m bakeoff.models.embedded.serve LAUNCH FOLDER`.

The first process waits until the server is ready, and exits with 0. Its child is the server, which
outlives the run that started it. Crashes of native code end only this process.
"""

import fcntl
import importlib
import json
import os
import secrets
import signal
import socket
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bakeoff._kernel.environment import hide_our_memory
from bakeoff.models.embedded.launch import EmbeddedEndpoint, Files, ServerLaunch, opened_lock
from bakeoff.models.embedded.relay import start_relay

_LOOPBACK = "127.0.0.1"
_LOG_WARNINGS = 2
_READY = b"ready"
_SECONDS_TO_CLOSE = 2


def main(arguments: list[str]) -> int:
    """Start the server in a child process, which serves until the last user is gone."""
    hide_our_memory()  # it holds the prompts and the key of all users
    launch = ServerLaunch.from_json(arguments[0])
    files = Files(Path(arguments[1]), launch.id)
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        return 0 if os.read(reading, len(_READY)) == _READY else 1
    os.close(reading)
    with opened_lock(files.alive) as alive, opened_lock(files.users) as users:
        fcntl.flock(alive, fcntl.LOCK_EX)
        try:
            server, running = start(launch, files)
        except RuntimeError as error:
            sys.stderr.write(f"{error}\n")  # no traceback: llama.cpp has logged the details above
            return 1
        files.write_state(running)
        os.write(writing, _READY)
        os.close(writing)
        fcntl.flock(users, fcntl.LOCK_EX)  # granted when the last user has exited or was killed
        files.state.unlink(missing_ok=True)
        files.log.unlink(missing_ok=True)
        files.socket.unlink(missing_ok=True)
        signal.alarm(_SECONDS_TO_CLOSE)  # llama.cpp may wait forever for an unfinished request
        del server
    return 0


def start(launch: ServerLaunch, files: Files) -> tuple[Any, EmbeddedEndpoint]:
    """Start llama.cpp. Return its server object, which must be kept, and its state.

    llama.cpp would answer web pages of any origin. So it listens on a socket that only this user
    can open, and the relay in front of it refuses such requests.

    A server that replaces a dead one keeps its address and key, so that users can continue.
    """
    former = files.read_state()
    key = former.api_key if former else secrets.token_urlsafe(32)
    listening = _listen((urlsplit(former.base_url).port or 0) if former else 0)
    files.socket.unlink(missing_ok=True)  # relative to the current folder, since long paths do not fit
    llama = importlib.import_module("xllamacpp")
    params = parameters(llama, launch)
    params.api_keys = [key]
    params.hostnames = [files.socket.name]
    server = llama.Server(params)
    start_relay(files.socket.name, listening, forced_calls=launch.template is not None)
    url = f"http://{_LOOPBACK}:{listening.getsockname()[1]}/v1"
    return server, EmbeddedEndpoint(url, key, os.getpid(), launch.model_name, _supports_tools(files.socket.name, key))


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((_LOOPBACK, port), backlog=512)
    except OSError:  # another program has taken the port
        return socket.create_server((_LOOPBACK, 0), backlog=512)


def parameters(llama: Any, launch: ServerLaunch) -> Any:
    """Return the llama.cpp parameters, with our changes to the defaults."""
    params = llama.CommonParams()
    params.model.path = launch.weights
    params.model_alias = {launch.model_name}
    params.n_parallel = launch.slots
    params.n_ctx = launch.slots * launch.context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = launch.threads
    params.use_jinja = True
    if launch.template is not None:
        params.chat_template = Path(__file__).with_name(launch.template).read_text("utf-8")
    params.verbosity = _LOG_WARNINGS
    params.ui = False
    params.endpoint_slots = False  # would show the prompts of other users
    params.cache_ram_mib = 0  # gigabytes by default, though prompts rarely repeat
    params.offline = True
    return params


def _supports_tools(path: str, key: str) -> bool:
    """Return True if the chat template supports tools. If not, llama.cpp ignores them silently."""
    with socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(30)
        channel.connect(path)
        connection = HTTPConnection(_LOOPBACK)
        connection.sock = channel
        connection.request("GET", "/props", headers={"Authorization": f"Bearer {key}"})
        props = json.load(connection.getresponse())
    return bool(props.get("chat_template_caps", {}).get("supports_tools", False))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
