"""A small MCP server over stdio: appointments and reminders, which are easily confused with kitchen timers."""

from typing import Annotated

from mcp.server import MCPServer
from pydantic import Field

server = MCPServer("calendar")
entries: list[str] = []

Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="The day, as YYYY-MM-DD.")]
Title = Annotated[str, Field(max_length=80, description="What it is about, in a few words.")]


@server.tool()
def add_appointment(title: Title, day: Day) -> str:
    """Enter an appointment with other people into the calendar."""
    entries.append(f"{day} {title}")
    return f"{title} is on {day}."


@server.tool()
def list_appointments(day: Day) -> str:
    """List all appointments of one day."""
    return ", ".join(entry for entry in entries if entry.startswith(day)) or f"Nothing is on {day}."


@server.tool()
def remind_me(
    title: Title, minutes: Annotated[int, Field(ge=1, le=10_000, description="From now, in minutes.")]
) -> str:
    """Remind the user of something to do, some minutes from now."""
    return f"You are reminded of {title} in {minutes} minutes."


if __name__ == "__main__":
    server.run("stdio")
