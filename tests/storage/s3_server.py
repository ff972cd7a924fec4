"""A real S3 server on loopback, in a process of its own."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECRET = "a-secret-that-no-file-of-a-run-may-hold"


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@contextmanager
def s3_server(bucket: str, port: int | None = None, log: Path = Path(os.devnull)) -> Iterator[dict[str, str]]:
    """Start a server with one bucket, and yield the environment in which it is found.

    It writes a line for each request to `log`.
    """
    port = port or free_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with log.open("wb") as lines:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=lines,
        )
    try:
        _make_bucket(f"http://127.0.0.1:{port}/{bucket}", server)
        yield environment
    finally:
        server.kill()
        server.wait()


def _make_bucket(address: str, server: "subprocess.Popen[bytes]") -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(urllib.request.Request(address, method="PUT"), timeout=60).close()
        except OSError:
            assert server.poll() is None, "the server has ended"
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the server does not answer")
