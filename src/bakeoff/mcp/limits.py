"""What a server may do to us: all of it bounded, for a server is hostile until shown otherwise."""

from pydantic import Field, PositiveFloat, PositiveInt

from bakeoff._kernel.model import FrozenModel


class HubLimits(FrozenModel):
    """Bounds for each server of a hub."""

    startup_seconds: PositiveFloat = Field(default=30.0, description="to start, shake hands and list all tools")
    call_seconds: PositiveFloat = Field(default=60.0, description="for a call that brings no limit of its own")
    close_seconds: PositiveFloat = Field(default=2.0, description="to leave by itself when it is no longer needed")
    deaths_in_a_row: PositiveInt = Field(default=2, description="without an answer in between; so one restart is made")
    tools: PositiveInt = 1_000
    pages: PositiveInt = 1_000
    list_bytes: PositiveInt = Field(default=2_000_000, description="all tools of a server together, as JSON")
    schema_bytes: PositiveInt = 200_000
    schema_depth: PositiveInt = 64
    name_length: PositiveInt = 128
    message_bytes: PositiveInt = Field(default=8_000_000, description="one message; a longer one ends the connection")
    result_bytes: PositiveInt = Field(default=1_000_000, description="one tool result, as JSON")
