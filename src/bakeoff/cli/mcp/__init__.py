"""List the commands of `bakeoff mcp` and `mctest`. Their modules are imported when needed."""

from bakeoff.cli.declare import add_lazily, group_of

HELP = "Test how well models use the tools of MCP servers."
COMMANDS = (
    ("evaluate", "Ask every model every prompt, and compare the tools it calls with the expected calls.", "evaluate"),
    (
        "compare",
        "Show what changed in the servers between two runs, and the points that each tool won or lost.",
        "compare",
    ),
    (
        "tune",
        "Try several descriptions of a tool: some cases choose the best, and others confirm that it is better.",
        "compare",
    ),
    ("lint", "Find what makes tools hard for a model to understand or to use.", "tools"),
    ("generate", "Draft test cases from the schemas of the tools.", "tools"),
    ("coverage", "Find the tools, parameters and enum values that no case exercises.", "tools"),
    ("init", "Write an example that runs as it is.", "tools"),
    ("schema", "Print the JSON Schema of a configuration, for editors.", "tools"),
    ("list", "Show what servers offer: tools with their parameters, resources and prompts.", "servers"),
    ("snapshot", "Write the tools, resources and prompts of servers to a file that can be committed.", "servers"),
    ("diff", "Show what changed since a snapshot: breaking, risky or cosmetic.", "servers"),
)
"""The name of each command, its line in the list of commands, and its module."""

app = group_of(HELP, "bakeoff mcp evaluate")
add_lazily(app, "bakeoff.cli.mcp", COMMANDS)
