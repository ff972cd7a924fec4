"""A small MCP server over stdio: timers, recipes and a shopping list."""

from typing import Annotated, Literal

from mcp.server import MCPServer
from pydantic import Field

server = MCPServer("kitchen")
shopping: list[str] = []

RECIPES = {
    "tomato": "Tomato soup: simmer six tomatoes with an onion for twenty minutes, then blend.",
    "egg": "Omelette: beat three eggs, pour them into hot butter, fold after two minutes.",
    "potato": "Roast potatoes: cut, oil and salt them, forty minutes at 200 °C.",
}


@server.tool()
def set_timer(minutes: Annotated[int, Field(ge=1, le=600, description="How long, in minutes.")]) -> str:
    """Start a kitchen timer that rings after a number of minutes."""
    return f"The timer rings in {minutes} minutes."


@server.tool()
def find_recipe(ingredient: Annotated[str, Field(max_length=60, description="One ingredient, in singular.")]) -> str:
    """Find a recipe that uses an ingredient."""
    return RECIPES.get(ingredient.lower(), f"There is no recipe with {ingredient}.")


@server.tool()
def add_to_shopping_list(
    item: Annotated[str, Field(max_length=60, description="What to buy.")],
    quantity: Annotated[int, Field(ge=1, le=100, description="How many.")] = 1,
) -> str:
    """Put something on the shopping list, to be bought later."""
    shopping.append(f"{quantity} × {item}")
    return "On the list: " + ", ".join(shopping)


@server.tool()
def convert_temperature(
    degrees: Annotated[float, Field(description="The temperature to convert.")],
    to: Annotated[Literal["celsius", "fahrenheit"], Field(description="The unit to convert to.")],
) -> float:
    """Convert an oven temperature from one unit to the other."""
    return round((degrees - 32) / 1.8 if to == "celsius" else degrees * 1.8 + 32, 1)


if __name__ == "__main__":
    server.run("stdio")
