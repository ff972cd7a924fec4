"""A command is declared in one module and carried out in another: both have the same parameters."""

import inspect
from importlib import import_module
from typing import Any

import pytest

from bakeoff.cli.agents import agents, image
from bakeoff.cli.declare import Flags
from bakeoff.cli.main import app, models, runs
from bakeoff.cli.mcp import mcp

DECLARED: list[Any] = [
    pytest.param(one.callback, id=f"{group.info.name or ''} {one.name}".strip())
    for group in (app, agents, image, mcp, models, runs)
    for one in group.registered_commands
]


@pytest.mark.parametrize("call", DECLARED)
def test_what_carries_a_command_out_takes_what_is_declared(call: Any) -> None:
    declared = call.__wrapped__
    carried_out = getattr(import_module(call.home), declared.__name__)
    wanted, taken = inspect.signature(declared).parameters, inspect.signature(carried_out).parameters
    assert list(wanted) == list(taken)
    for name, parameter in wanted.items():
        if isinstance(parameter.annotation, type) and issubclass(parameter.annotation, Flags):
            assert taken[name].annotation is parameter.annotation
