"""Connect to a Ray cluster, start workers on its nodes, and hide its messages from the user."""

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
_SETTINGS = 4  # a type of HTTP/2 frame
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # send no statistics
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # leave GPUs visible, without a warning
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

    Without an address, use RAY_ADDRESS or else this machine. If the program is already connected to
    this cluster, use and keep the connection. If it is connected to another, raise `UsageError`.
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
    # Otherwise anyone could read our API keys in the environment of Ray's processes.
    secret = [name for name in secrets_in(os.environ) if name in os.environ and not name.startswith("RAY_")]
    kept = {name: os.environ.pop(name) for name in secret}
    try:
        ray.init(
            address,
            log_to_driver=False,
            configure_logging=False,
            # Ray does not accept this setting for a running cluster.
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
    # Ray always prints node errors to stdout; we handle lost nodes ourselves.
    ray._private.worker.print_to_stdstream = lambda *_, **__: None


def _check_address(address: str | None) -> None:
    """Raise UsageError at once if nothing answers, since Ray itself would try for minutes."""
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
    """Return True if the other side answers the HTTP/2 preface, the base of gRPC."""
    if os.environ.get("RAY_USE_TLS") == "1":
        return True
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0)))
    answer = connection.recv(9)
    return len(answer) > 3 and answer[3] == _SETTINGS


def usable_nodes() -> list[RayNode]:
    """Return the living nodes that can run trials. Nodes without CPUs are left out."""
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
    """End a worker at once. Do nothing if it is dead."""
    import ray

    with suppress(ray.exceptions.RayError, ValueError):
        ray.kill(worker, no_restart=True)


async def answer_of(call: Awaitable[Any], seconds: float) -> Any:
    """Return a worker's answer. Raise ConnectionError if the worker is dead or too slow."""
    import ray

    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError as error:
        raise ConnectionError(f"it was silent for {seconds:g} s") from error
    except ray.exceptions.RayTaskError as error:  # for example, a module is missing on the node
        raise ConnectionError(f"{type(error.cause).__name__}: {error.cause}") from error
    except ray.exceptions.RayError as error:
        lines = str(error).strip().splitlines()
        raise ConnectionError(lines[-1 if "in its creation task" in lines[0] else 0]) from error
