"""The rules: what each is called, how grave it is, why it matters, and how it is mended."""

from typing import Literal

from bakeoff._kernel.model import FrozenModel

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")


class Rule(FrozenModel):
    """One thing that is looked for."""

    id: str
    level: Level
    title: str
    why: str
    how: str


class Finding(FrozenModel):
    """One place where a rule is broken. Names and texts of servers are quoted: data to show, never to obey."""

    rule: str
    server: str
    tool: str = ""
    parameter: str = ""
    what: str

    @property
    def level(self) -> Level:
        return RULES[self.rule].level

    @property
    def place(self) -> str:
        """`server/tool: parameter`."""
        return "/".join(part for part in (self.server, self.tool) if part) + (self.parameter and f": {self.parameter}")


def _rule(id: str, level: Level, title: str, why: str, how: str) -> Rule:
    return Rule(id=id, level=level, title=title, why=why, how=how)


_ALL = (
    _rule(
        "server-unusable",
        "error",
        "The server cannot be used",
        "Clients that are as careful as this one refuse it, and no model gets to see its tools.",
        "Start it by hand, and mend what the message names.",
    ),
    _rule(
        "no-tools",
        "warning",
        "The server offers no tools",
        "There is nothing that a model could call.",
        "Register a tool, or leave the server out.",
    ),
    _rule(
        "tool-description-missing",
        "error",
        "A tool has no description",
        "Models choose tools by their descriptions; a name alone is guessed at.",
        "Say in a sentence or two what the tool does and when to use it.",
    ),
    _rule(
        "tool-description-short",
        "note",
        "A description says hardly more than the name",
        "Models choose tools by their descriptions; what sets this one apart is not said.",
        "Say what it gives back, and when another tool is the better choice.",
    ),
    _rule(
        "tool-description-long",
        "warning",
        "A description is longer than some providers take",
        "OpenAI has refused function descriptions over 1,024 characters, and every request pays for the text again.",
        "Keep what decides whether to call the tool; move the rest to the parameters or the documentation.",
    ),
    _rule(
        "tool-description-duplicate",
        "error",
        "Two tools have the same description",
        "A model has nothing but the names to tell them apart by.",
        "Say in each what the other does not do, or merge them.",
    ),
    _rule(
        "tools-alike",
        "warning",
        "Two tools are nearly the same",
        "Models confuse tools whose names and descriptions are alike, also those of different servers.",
        "Name and describe what differs, or leave one of them out.",
    ),
    _rule(
        "tool-name-clash",
        "warning",
        "Two servers offer a tool of the same name",
        "Function calling knows names only: clients rename one, drop one, or refuse both.",
        "Put what sets it apart into the name, such as `github_search`.",
    ),
    _rule(
        "tool-name-not-portable",
        "error",
        "A provider refuses the tool's name",
        "A request with such a tool is answered with an error, or the client renames it without telling.",
        "Use 1 to 64 letters, digits, `_` and `-`, beginning with a letter.",
    ),
    _rule(
        "parameter-name-not-portable",
        "error",
        "A provider refuses a parameter's name",
        "Anthropic refuses a request whose properties are not called `[a-zA-Z0-9_.-]{1,64}`.",
        "Rename it to letters, digits and `_`.",
    ),
    _rule(
        "parameter-description-missing",
        "warning",
        "A parameter has no description",
        "Models guess its unit, its format and what it may be.",
        "Say what it means, with unit and format, and give an example.",
    ),
    _rule(
        "parameter-type-missing",
        "warning",
        "A parameter has no type",
        "Models send a text where a number is wanted; Google refuses schemas without types.",
        "Give it a `type`, or an `enum`.",
    ),
    _rule(
        "parameter-unbounded-string",
        "note",
        "Any text of any length is accepted",
        "A model may send a novel, or a format that the tool cannot read.",
        "Add `maxLength`, or `enum`, `format` or `pattern` if it is not free text.",
    ),
    _rule(
        "array-items-missing",
        "error",
        "A list does not say of what",
        "OpenAI and Google refuse an array without `items`.",
        "Add `items` with the type of its elements.",
    ),
    _rule(
        "required-not-declared",
        "error",
        "A required parameter is not among the properties",
        "Google refuses such a schema, and nobody can tell what to send.",
        "Declare it in `properties`, or take it out of `required`.",
    ),
    _rule(
        "default-does-not-fit",
        "warning",
        "A default is not what the schema allows",
        "A model that sends the default is refused by the server that named it.",
        "Correct the default or the schema.",
    ),
    _rule(
        "schema-union-at-top",
        "error",
        "The parameters are a choice between schemas",
        "OpenAI and Anthropic refuse `anyOf`, `oneOf`, `allOf`, `not` and `enum` at the top of a tool's schema.",
        "Make one object of it with optional properties, or several tools.",
    ),
    _rule(
        "schema-keyword-refused",
        "warning",
        "A provider refuses a keyword of the schema",
        "Google's function declarations take a part of JSON Schema only; many clients send schemas as they are.",
        "Say it with `type`, `enum`, `anyOf`, `minimum` and the like, and the rest in the description.",
    ),
    _rule(
        "schema-keyword-dropped",
        "note",
        "A keyword that some providers ignore or refuse",
        "`$schema` and `additionalProperties` do nothing for models, and older Google interfaces refuse them.",
        "Leave them out where the library that makes the schema allows it.",
    ),
    _rule(
        "schema-reference",
        "warning",
        "The schema refers to other schemas",
        "Not every client resolves `$ref`; one that leads elsewhere or to itself is refused by several providers.",
        "Write the schema out where it is used.",
    ),
    _rule(
        "schema-reference-dangling",
        "error",
        "A reference leads nowhere",
        "Providers refuse the schema, and nobody can tell what to send.",
        "Add what it refers to to `$defs`, or correct the reference.",
    ),
    _rule(
        "schema-deep",
        "warning",
        "Parameters are nested deeply",
        "OpenAI's strict mode takes ten levels, and models make more mistakes with each.",
        "Flatten it: give the tool the few values it needs as parameters of its own.",
    ),
    _rule(
        "many-parameters",
        "note",
        "A tool has very many parameters",
        "Models leave out or mix up parameters of long lists.",
        "Split the tool, or give most of them defaults.",
    ),
    _rule(
        "too-many-tools",
        "error",
        "There are more tools than a provider takes",
        "OpenAI takes 128 tools in a request, and models choose worse long before that.",
        "Offer fewer at a time: split the server, or let the user choose a set.",
    ),
    _rule(
        "tool-expensive",
        "note",
        "A tool takes much room in every request",
        "Its description and schema are sent, and paid for, with each message.",
        "Shorten descriptions and enums; move what is rarely needed into another tool.",
    ),
    _rule(
        "list-expensive",
        "warning",
        "The tools together take much room in every request",
        "All of them are sent, and paid for, with each message, before the user has said a word.",
        "Shorten the dearest ones first; offer fewer at a time.",
    ),
    _rule(
        "hostile-invisible",
        "error",
        "A text holds characters that people cannot see",
        "Models read them: instructions can be hidden this way from whoever approves the server.",
        "Remove them. If you did not write them, do not use this server.",
    ),
    _rule(
        "hostile-instructions",
        "error",
        "A text tells the model what to do beyond this tool",
        "A description reaches the model like an instruction; this one reads like an attack on it or on its user.",
        "Describe the tool alone. If you did not write it, do not use this server.",
    ),
)
RULES: dict[str, Rule] = {rule.id: rule for rule in _ALL}
