"""Describe a command-line agent as data: how to start it, and how to connect it to the meter."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import UsageError
from bakeoff.plan import RelativePath

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,40}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FROM_ENVIRONMENT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SECTION = re.compile(r"\{#([A-Za-z]+)\}(.*?)\{/\1\}", re.DOTALL)
_PLACEHOLDER = re.compile(r"(?<!\$)\{([A-Za-z]+)(?::-([^{}]*))?\}")
_EITHER = re.compile(f"{_FROM_ENVIRONMENT.pattern}|{_PLACEHOLDER.pattern}")

_TEXTS = ("model", "provider", "instructions", "home", "meterUrl", "meterToken")
_LISTS = ("sourceFiles", "testFiles", "meterArguments")


def _only_if(fits: Callable[[str], object], problem: str) -> AfterValidator:
    def check(text: str) -> str:
        if not fits(text):
            raise ValueError(problem.format(repr(text)))
        return text

    return AfterValidator(check)


def _known_placeholders(text: str) -> str:
    unknown = [name for name, _ in _PLACEHOLDER.findall(_SECTION.sub(r"\2", text)) if name not in _TEXTS + _LISTS]
    unknown += [name for name, _ in _SECTION.findall(text) if name not in _TEXTS + _LISTS]
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in _TEXTS + _LISTS)
        raise ValueError(f"{{{unknown[0]}}} is not a placeholder: there are {known}")
    return text


AgentName = Annotated[str, _only_if(_NAME.fullmatch, "{}: use lower-case letters, digits, dots and dashes, 41 at most")]
Variable = Annotated[str, _only_if(_VARIABLE.fullmatch, "{} is not a variable name")]
ProviderName = Annotated[
    str, Field(min_length=1), _only_if(lambda name: name.strip() and name.isprintable(), "{} is not a provider name")
]
Word = Annotated[
    str, _only_if(lambda text: "\0" not in text, "it contains a NUL character, which cannot be passed to a program")
]
Template = Annotated[Word, AfterValidator(_known_placeholders)]
Required = Variable | tuple[Variable, ...]
"""A variable that must be set, or several of which one must be set."""


class _Description(FrozenModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Install(_Description):
    """How users install the agent. It is only shown, never run."""

    method: Literal["npm", "pip", "pipx", "uv", "brew", "script", "binary", "other"]
    package: str | None = Field(default=None, description="its name in the method's registry")
    command: str | None = Field(default=None, description="the command to type, if method and package do not give it")
    url: str | None = None

    @property
    def hint(self) -> str:
        """Return the command or text that tells users how to install the agent."""
        special = {"npm": "npm install -g", "uv": "uv tool install"}
        if self.command:
            return f"`{self.command}`"
        if self.package and self.method in ("npm", "pip", "pipx", "uv", "brew"):
            return f"`{special.get(self.method, f'{self.method} install')} {self.package}`"
        return f"see {self.url}" if self.url else f"by {self.method}"


class VersionCommand(_Description):
    """The command that prints the agent's version. The first line is kept."""

    command: tuple[Word, ...] = Field(min_length=1)


class ModelRule(_Description):
    """How the agent treats `--model`."""

    required: bool = Field(default=False, description="it does not start without --model")
    example: str | None = Field(default=None, description="a name as this agent writes it, to show to users")


class Home(_Description):
    """The content of the agent's private HOME, which has no other files of the user."""

    login: tuple[RelativePath, ...] = Field(
        default=(), description="paths below the user's HOME, copied only with --use-login"
    )
    files: dict[RelativePath, str] = Field(default={}, description="files to write, with placeholders")


class MeterRule(_Description):
    """Settings that give the agent another base URL, for one provider."""

    env: dict[Variable, Template] = {}
    files: dict[RelativePath, str] = Field(default={}, description="configuration below HOME, with placeholders")
    arguments: tuple[Template, ...] = Field(default=(), description="the value of {meterArguments}")
    upstream: str | None = Field(default=None, description="Bakeoff's name of the provider, if it differs")


class ProviderRule(_Description):
    """The variables that the agent needs and receives with one provider."""

    require: tuple[Required, ...] = ()
    env: dict[Variable, Template] = {}


class AgentDefinition(_Description):
    """One agent, as read from YAML and stored in plans."""

    name: AgentName
    description: str = ""
    default_provider: ProviderName
    install: Install
    version: VersionCommand | None = None
    model: ModelRule = ModelRule()
    meter: dict[str, MeterRule] = Field(default={}, description="by provider; without an entry it is not metered")
    home: Home = Home()
    files: dict[RelativePath, str] = Field(
        default={},
        description="local files, such as scripts, that are copied into HOME: {home}/NAME → path beside this file",
    )
    require: tuple[Required, ...] = ()
    env: dict[Variable, Template] = {}
    providers: dict[str, ProviderRule] = Field(default={}, description="what each needs; if empty, any name is allowed")
    command: tuple[Template, ...] = Field(min_length=1)

    @field_validator("command")
    @classmethod
    def _names_a_program(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        program = command[0]
        if not program.strip() or _PLACEHOLDER.search(program) or _SECTION.search(program):
            raise ValueError(f"{program!r} names the program and must have no placeholders: write its name or path")
        return command

    @model_validator(mode="after")
    def _has_room_for_all_files(self) -> Self:
        for provider, rule in [("", MeterRule()), *self.meter.items()]:
            names = {*self.files, *self.home.files, *rule.files}
            for name in names:
                if inside := names & {str(parent) for parent in PurePosixPath(name).parents}:
                    where = f"files, home.files and meter.{provider}.files" if provider else "files and home.files"
                    raise ValueError(
                        f"{where} have both {min(inside)!r} and {name!r}: a path cannot be both file and folder"
                    )
        return self

    def check_provider(self, provider: str) -> None:
        """Raise `UsageError` if the agent has a list of providers without this one."""
        if self.providers and provider not in self.providers:
            raise UsageError(
                f"agent {self.name!r} has no provider {provider!r}: it has {', '.join(sorted(self.providers))}"
            )

    def check_meter(self, provider: str, upstreams: Collection[str]) -> None:
        """Raise UsageError if a meter rule has a wrong provider, which would expose the key."""
        for name, rule in self.meter.items():
            place, upstream = f"agent {self.name!r}: meter.{name}", rule.upstream or name
            if upstream not in upstreams:
                near = get_close_matches(upstream, upstreams, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(upstreams))}"
                raise UsageError(f"{place}{'.upstream' if rule.upstream else ''}: no provider {upstream!r}; {hint}")
            if self.providers and name not in self.providers:
                raise UsageError(f"{place}: the agent has no such provider: it has {', '.join(sorted(self.providers))}")
        if self.meter and provider not in self.meter and provider not in self.providers:
            raise UsageError(
                f"agent {self.name!r}: `meter` has no rule for provider {provider!r}, only for "
                f"{', '.join(sorted(self.meter))}: name {provider!r} in `providers` to run it without the meter"
            )

    def required(self, provider: str) -> tuple[Required, ...]:
        """Return the variables that must be set, for the agent and for the provider."""
        return (*self.require, *(self.providers[provider].require if provider in self.providers else ()))

    def missing(self, provider: str, environment: Mapping[str, str]) -> list[str]:
        """Return descriptions of the required variables that are not set."""
        told = []
        for required in self.required(provider):
            names = (required,) if isinstance(required, str) else required
            if not any(environment.get(name, "").strip() for name in names):
                told.append(" or ".join(names))
        return told

    def lacks_model(self, model: str | None) -> str | None:
        """Return what to do if a model is missing, or None."""
        if model is not None or not self.model.required:
            return None
        example = f", for instance --model {self.model.example}" if self.model.example else ""
        return f"it has no model of its own: add --model{example}"

    def handed_over(self, provider: str) -> tuple[str, ...]:
        """Return the variables whose values the agent receives from the user's environment."""
        rules = [rules[provider].env for rules in (self.providers, self.meter) if provider in rules]
        texts = [text for variables in (self.env, *rules) for text in variables.values()]
        return tuple(dict.fromkeys(found[1] for text in texts for found in _FROM_ENVIRONMENT.finditer(text)))

    def key_variables(self, provider: str) -> tuple[str, ...]:
        """Return the variables that may contain a secret."""
        named = [(each,) if isinstance(each, str) else each for each in self.required(provider)]
        return tuple(dict.fromkeys(name for names in named for name in names))


@dataclass(frozen=True, slots=True)
class Values:
    """The values of placeholders for one trial."""

    texts: Mapping[str, str]
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def expand(self, text: str) -> str:
        """Replace all placeholders at once, so that those inside values are not replaced."""
        return _PLACEHOLDER.sub(lambda found: self._put(found[0], found[1], found[2]), self._sections(text))

    def expand_command(self, command: Sequence[str]) -> tuple[str, ...]:
        """Return the words of a command. Words with a list repeat; empty words are dropped."""
        words: list[str] = []
        for element in command:
            held, default = next((found for found in _PLACEHOLDER.findall(element) if found[0] in _LISTS), (None, ""))
            if held is not None and (items := self.lists.get(held)):
                each = [Values({**self.texts, held: item}, {}, self.environment).expand(element) for item in items]
                words += filter(None, each)
            elif (held is None or default) and ((word := self.expand(element)) or word == element):
                words.append(word)
        return tuple(words)

    def expand_variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Replace `${VAR:-default}` and placeholders. Variables with empty values are left out."""

        def put(found: re.Match[str]) -> str:
            if found[1] is not None:
                return self.environment.get(found[1]) or found[2] or ""
            return self._put(found[0], found[3], found[4])

        expanded = {name: _EITHER.sub(put, self._sections(text)) for name, text in variables.items()}
        return {name: text for name, text in expanded.items() if text}

    def _sections(self, text: str) -> str:
        def kept(section: re.Match[str]) -> str:
            return section[2] if self.texts.get(section[1]) or self.lists.get(section[1]) else ""

        return _SECTION.sub(kept, text)

    def _put(self, whole: str, name: str, default: str | None) -> str:
        if name not in _TEXTS + _LISTS:
            return whole
        return self.texts.get(name) or " ".join(self.lists.get(name, ())) or default or ""
