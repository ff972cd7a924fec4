"""Use code of the user, or a web address, as a subject: `code` and `http`, as configurations of promptfoo name them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, JsonValue

from bakeoff._kernel.environment import filled, read_environment, variables_in
from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import GraderError, InfraError, SubjectError, UsageError
from bakeoff.models.prompt_templates import fill_all
from bakeoff.plan import SubjectSpec, describe, read_options
from bakeoff.protocols import Needs, Task
from bakeoff.record import Transcript, Usage
from bakeoff.storage.redaction import secrets_in
from bakeoff.toolchains.user_code import Language, UserCode, argv_of, split_path

_SECONDS = 300.0
_NOT_ITS_FAULT = (401, 403, 407, 408, 429)  # about keys, time and limits: no answer to the prompt


class _OfCases(FrozenModel):
    variables: dict[str, dict[str, JsonValue]] = Field(default={}, description="values for the code, by case")


class CodeOptions(_OfCases):
    """The options of the kind `code`."""

    language: Language
    code: str = Field(description="`file://path[:function]`, which gets the prompt, `options` and `context`")
    config: dict[str, JsonValue] = Field(default={}, description="`options.config` for the code")


@dataclass(frozen=True, slots=True)
class CodeSubject:
    """A function or class of the user in a file, which runs in the worker of its language."""

    name: str
    options: CodeOptions
    raises_its_own_errors: ClassVar[bool] = True

    @classmethod
    def from_spec(cls, spec: SubjectSpec) -> Self:
        """Read the options. Raise UsageError if there is no such file, or this machine cannot run its language."""
        options = read_options(spec, CodeOptions)
        path = Path(split_path(options.code)[0])
        if not path.is_file():
            raise UsageError(f"{describe(spec)}: there is no file {str(path)!r}")
        argv_of(options.language)
        return cls(spec.name, options)

    @property
    def source(self) -> UserCode:
        given = {"id": self.name, "config": self.options.config}
        named = split_path(self.options.code)[1]
        method = "" if named or self.options.language == "python" else "callApi"
        return UserCode(self.options.language, self.options.code, usual="call_api", method=method, options=given)

    @property
    def needs(self) -> Needs:
        return Needs(resources=(self.source.worker,))

    async def attempt(self, task: Task) -> Transcript:
        """Call the function. An error that it raises or returns is the subject's failure."""
        context = {"vars": self.options.variables.get(task.case_id, {}), "prompt": {"raw": task.prompt}}
        given = self.source.options
        order = (given, context) if self.options.language == "python" else (context, given)
        value = await _result(self.source, task, task.prompt, *order)
        told = value if isinstance(value, Mapping) and {"output", "error"} & {*value} else {"output": value}
        if told.get("error"):
            raise SubjectError(f"{self.source} returned the error {told['error']}")
        usage = _usage(told)
        task.spend(usage)
        return Transcript(output=told.get("output"), usage=usage)


def _usage(told: Mapping[str, Any]) -> Usage:
    tokens, cost = told.get("tokenUsage") or {}, told.get("cost")
    counts = {ours: tokens.get(theirs) or 0 for ours, theirs in (("input", "prompt"), ("output", "completion"))}
    return Usage(requests=1, cost=cost if isinstance(cost, int | float) else None, **counts)


async def _result(code: UserCode, task: Task, *arguments: Any) -> Any:
    try:
        value, error = await code.called(task.resources, *arguments)
    except GraderError as problem:  # the code cannot be loaded, or it ended its process
        raise InfraError(str(problem), permanent=True) from problem
    if error is not None:
        raise SubjectError(f"{code} raised {error}")
    return value


class HttpOptions(_OfCases):
    """The options of the kind `http`. All texts may be templates with `prompt` and the values of a case."""

    url: str
    method: str = "POST"
    headers: dict[str, str] = Field(default={}, description="`${NAME}` is that variable's value")
    params: dict[str, str] = {}
    body: JsonValue = None
    code: str = Field(default="", description="JavaScript that makes the answer of `json` and `text`")


@dataclass(frozen=True, slots=True)
class HttpSubject:
    """A web address that answers one request for each prompt."""

    options: HttpOptions
    environment: Mapping[str, str] = field(repr=False)

    @classmethod
    def from_spec(cls, spec: SubjectSpec) -> Self:
        """Read the options. Raise UsageError if a variable is not set, or Node is needed and missing."""
        options, environment = read_options(spec, HttpOptions), read_environment()
        for name in variables_in(options.headers.values()):
            if name not in environment:
                raise UsageError(f"{describe(spec)}: ${{{name}}} is not set: set {name} in the environment or in .env")
        if options.code:
            argv_of("javascript")
        return cls(options, environment)

    @property
    def source(self) -> UserCode:
        return UserCode("javascript", self.options.code, names=("json", "text", "context"))

    @property
    def needs(self) -> Needs:
        return Needs(resources=(self.source.worker,) if self.options.code else ())

    def lacks(self) -> list[str]:
        return []

    def secrets(self) -> dict[str, str]:
        names = variables_in(self.options.headers.values())
        return secrets_in({name: self.environment[name] for name in names})

    def offline(self) -> Self:
        return self

    async def attempt(self, task: Task) -> Transcript:
        """Send the prompt. A refusal is the subject's failure, and an address that does not answer is not."""
        import httpx2

        from bakeoff.models.clients import http_client  # imports SDKs that take a second to load

        options, values = self.options, {**self.options.variables.get(task.case_id, {}), "prompt": task.prompt}
        url, headers, params, body = fill_all([options.url, options.headers, options.params, options.body], values)
        content = {"content": body} if isinstance(body, str) else {} if body is None else {"json": body}
        async with http_client(url, _SECONDS) as client:
            try:
                sent = {"headers": filled(headers, self.environment), "params": params or None, **content}
                response = await client.request(options.method, url, **sent)
            except httpx2.HTTPError as error:
                raise InfraError(f"{url} does not answer: {error!r}") from error
        if not response.is_success:
            is_ours = response.is_server_error or response.status_code in _NOT_ITS_FAULT
            kind = InfraError if is_ours else SubjectError
            raise kind(f"{url} answers {response.status_code}: {response.text[:500]}")
        return Transcript(output=await self._answer(response.text, task), usage=Usage(requests=1))

    async def _answer(self, text: str, task: Task) -> Any:
        try:
            data = json.loads(text)
        except ValueError:
            data = None
        if not self.options.code:
            return text if data is None else data
        value = await _result(self.source, task, data, text, {})
        if value is None:
            raise SubjectError(f"{self.source} finds nothing in the response {text[:500]}")
        return value.get("output", value) if isinstance(value, Mapping) else value
