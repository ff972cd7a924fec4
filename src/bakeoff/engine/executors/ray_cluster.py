"""Connect to a Ray cluster, start workers on its nodes, and keep its messages off the user's terminal."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from bakeoff.errors import UsageError
from bakeoff.storage.redaction import secrets_in

_CONNECT_SECONDS = 5.0
_SETTINGS = 4  # the type of a frame of HTTP/2
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # send no statistics to anybody
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # leaves the GPUs visible, and Ray without a warning about it
}


@dataclass(frozen=True, slots=True)
class RayNode:
    """A machine of the cluster."""

    id: str
    address: str
    cpus: float

    def __str__(self) -> str:
        return f"Ray node {self.address} ({self.id[:8]})"


@asynccontextmanager
async def connected(address: str | None) -> AsyncIterator[None]:
    """Connect to a cluster, or start one on this machine, and disconnect at the end.

    Without an address, use RAY_ADDRESS or else this machine. A cluster that the program itself has connected to is used
    and stays connected. Raises `UsageError` if that is not the wanted one.
    """
    missing = {name: value for name, value in _QUIET.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        import ray

        if ray.is_initialized():
            if address is not None and address not in ("auto", ray.get_runtime_context().gcs_address):
                raise UsageError(
                    f"ray_address: {address!r} is not the cluster that this program has connected to already"
                )
            yield
            return
        # In a thread, where Ray cannot replace our handler of SIGTERM.
        await asyncio.to_thread(_connect, address or os.environ.get("RAY_ADDRESS") or None)
    finally:
        for name in missing:
            os.environ.pop(name, None)
    try:
        yield
    finally:
        await asyncio.to_thread(ray.shutdown)


def _connect(address: str | None) -> None:
    """Connect this process to a cluster, silently. Raise UsageError if none can be reached."""
    import ray

    _check_address(address)
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    # The processes that Ray starts would have the keys of the environment for everybody to read.
    secret = [name for name in secrets_in(os.environ) if name in os.environ and not name.startswith("RAY_")]
    kept = {name: os.environ.pop(name) for name in secret}
    try:
        ray.init(
            address,
            log_to_driver=False,
            configure_logging=False,
            # Ray takes no such setting for a cluster that runs already.
            include_dashboard=False if address in (None, "local") else None,
        )
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UsageError(
            f"ray_address: no Ray cluster can be reached at {address or 'this machine'}: {first} (one that was started "
            "with a token needs RAY_AUTH_MODE=token and RAY_AUTH_TOKEN)"
        ) from error
    finally:
        os.environ.update(kept)
    # Ray prints errors of any node to stdout, whatever was asked for; lost nodes are dealt with here.
    ray._private.worker.print_to_stdstream = lambda *_, **__: None


def _check_address(address: str | None) -> None:
    """Raise UsageError at once if nothing answers: Ray itself would try for minutes."""
    if address is None or address in ("auto", "local"):
        return
    place = address.removeprefix("ray://")
    host, colon, port = place.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"ray_address: {address!r} is no address: write it as HOST:PORT, such as 10.0.0.1:6379")
    way_out = "start one with `ray start --head`, or correct the address"
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS) as connection:
            is_ray = _speaks_grpc(connection)
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"ray_address: no Ray cluster answers at {address} ({why}): {way_out}") from error
    if not is_ray:
        raise UsageError(f"ray_address: what answers at {address} is no Ray cluster: {way_out}")


def _speaks_grpc(connection: socket.socket) -> bool:
    """Return True if the other side answers the preface of HTTP/2, the base of gRPC, with its settings."""
    if os.environ.get("RAY_USE_TLS") == "1":
        return True
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0)))
    answer = connection.recv(9)
    return len(answer) > 3 and answer[3] == _SETTINGS


def usable_nodes() -> list[RayNode]:
    """Return the living nodes that can run trials. Nodes without CPUs, as heads often are, are not meant for that."""
    import ray

    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [
        RayNode(node["NodeID"], node["NodeManagerAddress"], node["Resources"]["CPU"])
        for node in nodes
        if node["Alive"] and node["Resources"].get("CPU")
    ]


def start_worker(node: RayNode) -> Any:
    """Start a worker on a node, and return its actor handle."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from bakeoff.engine.executors.ray_worker import Worker

    place = NodeAffinitySchedulingStrategy(node.id, soft=False)
    actor: Any = ray.remote(Worker)
    return actor.options(num_cpus=0, max_restarts=0, max_concurrency=4, scheduling_strategy=place).remote()


def kill_worker(worker: Any) -> None:
    """End a worker at once. Does nothing if it is already dead."""
    import ray

    with suppress(ray.exceptions.RayError, ValueError):
        ray.kill(worker, no_restart=True)


async def answer_of(call: Awaitable[Any], seconds: float) -> Any:
    """Return the answer of a worker. Raise ConnectionError if the worker is dead, or silent for this many seconds."""
    import ray

    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError as error:
        raise ConnectionError(f"it was silent for {seconds:g} s") from error
    except ray.exceptions.RayTaskError as error:  # such as a module that is missing there
        raise ConnectionError(f"{type(error.cause).__name__}: {error.cause}") from error
    except ray.exceptions.RayError as error:
        lines = str(error).strip().splitlines()
        raise ConnectionError(lines[-1 if "in its creation task" in lines[0] else 0]) from error
