"""The lint rules: the id and level of each, why it matters, and how to fix it."""

from typing import Literal, Self

from bakeoff._kernel.model import FrozenModel
from bakeoff.mcp import ServerTool

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")


class Rule(FrozenModel):
    """One kind of problem."""

    id: str
    level: Level
    title: str
    why: str
    how: str


class Finding(FrozenModel):
    """One place where a rule is broken. Names and texts of servers are untrusted data."""

    rule: str
    server: str
    tool: str = ""
    parameter: str = ""
    what: str

    @classmethod
    def of(cls, tool: ServerTool, rule: str, what: str, parameter: str = "") -> Self:
        """Return a finding about one tool."""
        return cls(rule=rule, server=tool.server, tool=tool.name, parameter=parameter, what=what)

    @property
    def level(self) -> Level:
        return RULES[self.rule].level

    @property
    def place(self) -> str:
        """Return `server/tool: parameter`."""
        return "/".join(part for part in (self.server, self.tool) if part) + (self.parameter and f": {self.parameter}")


def _rule(id: str, level: Level, title: str, why: str, how: str) -> Rule:
    return Rule(id=id, level=level, title=title, why=why, how=how)


_ALL = (
    _rule(
        "server-unusable",
        "error",
        "The server cannot be used",
        "Careful clients refuse it, and no model sees its tools.",
        "Start it by hand, and fix what the message names.",
    ),
    _rule(
        "no-tools",
        "warning",
        "The server offers no tools",
        "A model has nothing to call.",
        "Register a tool, or leave the server out.",
    ),
    _rule(
        "tool-description-missing",
        "error",
        "A tool has no description",
        "Models choose tools by their descriptions. Given only a name, they guess.",
        "Say in one or two sentences what the tool does and when to use it.",
    ),
    _rule(
        "tool-description-short",
        "note",
        "A description says little more than the name",
        "Models choose tools by their descriptions, and this one does not say how the tool differs from others.",
        "Say what it returns, and when another tool is the better choice.",
    ),
    _rule(
        "tool-description-long",
        "warning",
        "A description is longer than some providers accept",
        "OpenAI has refused function descriptions over 1,024 characters, and every request pays for the text again.",
        "Keep what helps to choose the tool. Move the rest to the parameters or the documentation.",
    ),
    _rule(
        "tool-description-duplicate",
        "error",
        "Two tools have the same description",
        "Only their names tell a model which is which.",
        "Say in each what the other does not do, or merge them.",
    ),
    _rule(
        "tools-alike",
        "warning",
        "Two tools are nearly the same",
        "Models confuse tools with similar names and descriptions, also across servers.",
        "Name and describe the difference, or remove one of them.",
    ),
    _rule(
        "tool-name-clash",
        "warning",
        "Two servers offer a tool of the same name",
        "Function calling knows only names: clients rename one, drop one, or refuse both.",
        "Make the name specific, such as `github_search`.",
    ),
    _rule(
        "tool-name-not-portable",
        "error",
        "A provider refuses the tool's name",
        "A request with such a tool fails, or the client renames the tool silently.",
        "Use 1 to 64 letters, digits, `_` and `-`, starting with a letter.",
    ),
    _rule(
        "parameter-name-not-portable",
        "error",
        "A provider refuses a parameter's name",
        "Anthropic refuses requests with property names that do not match `[a-zA-Z0-9_.-]{1,64}`.",
        "Use only letters, digits and `_`.",
    ),
    _rule(
        "parameter-description-missing",
        "warning",
        "A parameter has no description",
        "Models guess its unit, its format and its possible values.",
        "Describe its meaning, unit and format, and give an example.",
    ),
    _rule(
        "parameter-type-missing",
        "warning",
        "A parameter has no type",
        "Models send a text instead of a number, and Google refuses schemas without types.",
        "Add a `type` or an `enum`.",
    ),
    _rule(
        "parameter-unbounded-string",
        "note",
        "Any text of any length is accepted",
        "A model may send a very long text, or a format that the tool cannot read.",
        "Add `maxLength`, or `enum`, `format` or `pattern` if it is not free text.",
    ),
    _rule(
        "array-items-missing",
        "error",
        "A list does not declare the type of its items",
        "OpenAI and Google refuse an array without `items`.",
        "Add `items` with the type of its elements.",
    ),
    _rule(
        "required-not-declared",
        "error",
        "A required parameter is not among the properties",
        "Google refuses such a schema, and models cannot know what to send.",
        "Declare it in `properties`, or remove it from `required`.",
    ),
    _rule(
        "default-does-not-fit",
        "warning",
        "A default does not match the schema",
        "The server refuses a model that sends the default.",
        "Correct the default or the schema.",
    ),
    _rule(
        "schema-union-at-top",
        "error",
        "The parameters are a union of schemas",
        "OpenAI and Anthropic refuse `anyOf`, `oneOf`, `allOf`, `not` and `enum` at the top of a tool's schema.",
        "Use one object with optional properties, or several tools.",
    ),
    _rule(
        "schema-keyword-refused",
        "warning",
        "A provider refuses a keyword of the schema",
        "Google's function declarations support only a part of JSON Schema, and many clients send schemas unchanged.",
        "Use `type`, `enum`, `anyOf`, `minimum` and the like, and put the rest into the description.",
    ),
    _rule(
        "schema-keyword-dropped",
        "note",
        "A keyword that some providers ignore or refuse",
        "`$schema` and `additionalProperties` do not help models, and older Google APIs refuse them.",
        "Remove them if the library that generates the schema allows it.",
    ),
    _rule(
        "schema-reference",
        "warning",
        "The schema refers to other schemas",
        "Not every client resolves `$ref`. Several providers refuse external and recursive references.",
        "Write the schema inline where it is used.",
    ),
    _rule(
        "schema-reference-dangling",
        "error",
        "A reference has no target",
        "Providers refuse the schema, and models cannot know what to send.",
        "Add the target to `$defs`, or correct the reference.",
    ),
    _rule(
        "schema-deep",
        "warning",
        "Parameters are deeply nested",
        "OpenAI's strict mode accepts ten levels, and models make more mistakes with every level.",
        "Flatten it: make the few values that the tool needs top-level parameters.",
    ),
    _rule(
        "many-parameters",
        "note",
        "A tool has many parameters",
        "Models omit or confuse parameters in long lists.",
        "Split the tool, or give most of them defaults.",
    ),
    _rule(
        "too-many-tools",
        "error",
        "There are more tools than a provider accepts",
        "OpenAI accepts 128 tools in a request, and models choose worse long before that.",
        "Offer fewer at a time: split the server, or let users choose a set.",
    ),
    _rule(
        "tool-expensive",
        "note",
        "A tool uses many tokens in every request",
        "Its description and schema are sent and paid for with every message.",
        "Shorten descriptions and enums. Move rarely needed parts into another tool.",
    ),
    _rule(
        "list-expensive",
        "warning",
        "All tools together use many tokens in every request",
        "All of them are sent and paid for with every message, before the user has said anything.",
        "Shorten the most expensive ones first, or offer fewer at a time.",
    ),
    _rule(
        "hostile-invisible",
        "error",
        "A text contains characters that people cannot see",
        "Models read them: they can hide instructions from the person who approves the server.",
        "Remove them. If you did not write them, do not use this server.",
    ),
    _rule(
        "hostile-instructions",
        "error",
        "A text gives the model instructions beyond this tool",
        "Models may follow descriptions like instructions, and this one reads like an attack on the model or its user.",
        "Describe only the tool. If you did not write it, do not use this server.",
    ),
)
RULES: dict[str, Rule] = {rule.id: rule for rule in _ALL}
