"""Keys of agents' requests: what differs between two runs of the same thing is left out, and nothing else is."""

import pytest

from bakeoff.replay.metered import exchange_key, lasting


def key_of(text: str) -> str:
    body = {"messages": [{"role": "tool", "content": [{"text": text}]}], "session_id": text}
    return exchange_key({"case": "c", "round": 0}, "v1/messages", body, 0).digest


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        ("Output: ok\nProcess Group PGID: 4711", "Output: ok\nProcess Group PGID: 93"),
        ("Background PIDs: 12, 13\nProcess Group PGID: 11", "Background PIDs: 512, 513\nProcess Group PGID: 511"),
        ('{"pid": 17, "ok": true}', '{"pid": 3001, "ok": true}'),
        ("Process running with session ID 81233", "Process running with session ID 4"),
        (
            "Command running in background with ID: b3f9a. Output is being written to: /tmp/claude-2000000000/"
            "-tmp-bakeoff-place-a1b2c3d4-work/tasks/b3f9a.output",
            "Command running in background with ID: c81e2. Output is being written to: /tmp/claude-2000000001/"
            "-tmp-bakeoff-place-x_y_z_1_-work/tasks/c81e2.output",
        ),
        # Claude writes its folder's name with dashes, so an underscore in the name of a place becomes one.
        ("~/projects/-tmp-bakeoff-place-ab12cd34-work/memory", "~/projects/-tmp-bakeoff-place-ab-2c-34-work/memory"),
        ("cwd: /tmp/bakeoff-place-ab12cd34/work", "cwd: /tmp/bakeoff-place-__12cd3_/work"),
        ("cat: /tmp/tmp81a.py: No such file", "cat: /tmp/tmpz_9.py: No such file"),
        ("-rw-r--r-- 1 2000000000 2000000000 3 Nov  6 09:12 a", "-rw-r--r-- 1 2000000007 2000000007 3 Dec 16 13:37 a"),
        ("<function double at 0x7f12ab34cd56>", "<function double at 0x7ffe00112233>"),
        ("[master (root-commit) 1a2b3c4] start", "[master (root-commit) 99ffee0] start"),
        ("commit 0123456789abcdef0123456789abcdef01234567", "commit ffff456789abcdef0123456789abcdef01234567"),
        ("  ✓ doubles (12 ms)\nTime: 1.2 s, estimated 2 s", "  ✓ doubles\nTime: 0.9 s"),
        ("3 passed in 0.12s", "3 passed in 1.4s"),
        ("# duration_ms 12.5", "# duration_ms 3"),
    ],
)
def test_a_key_leaves_out_what_differs_between_two_runs(recorded: str, now: str) -> None:
    assert key_of(recorded) == key_of(now), (lasting({"text": recorded}), lasting({"text": now}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 passed", "2 passed"),
        ("exit code: 1", "exit code: 0"),
        ("expected 8 to be 9", "expected 8 to be 10"),
        ("the process id is not a number", "the process is not a number"),
        ("mask = 0xff", "mask = 0x0f"),
        ("/workspace/double.py", "/workspace/triple.py"),
    ],
)
def test_a_key_holds_what_an_agent_found_out(one: str, other: str) -> None:
    assert key_of(one) != key_of(other)
