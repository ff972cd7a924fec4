"""Test that output of a browser in the sandbox is a picture only if it can be encoded again."""

import base64
import json

import pytest

from bakeoff.toolchains.vitest import read_picture

pytestmark = pytest.mark.full


@pytest.mark.parametrize("printed", [b"", b"\n", b"no JSON", b"[]", b"{}", b'{"png": 1}', b'{"problem": ""}'])
def test_other_output_is_no_picture(printed: bytes) -> None:
    assert read_picture(printed) is None


def test_a_reason_is_kept_without_its_colours() -> None:
    found = read_picture(b'noise\n{"problem": "\\u001b[31mit threw\\u001b[39m"}\n')
    assert found is not None
    assert found.problem == "it threw"


@pytest.mark.parametrize("png", ["%%%", base64.b64encode(b"<svg/>").decode(), "é"])
def test_a_forged_picture_is_refused(png: str) -> None:
    found = read_picture(json.dumps({"png": png}).encode())
    assert found is not None
    assert not found.png
    assert found.problem.startswith("the browser gave no picture that can be shown")
