"""Turn the providers of promptfoo into subjects: models, programs, code, addresses, and `echo`."""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bakeoff._kernel.imports import command_revision
from bakeoff._kernel.yaml import Key, read_yaml
from bakeoff.doors.data_files import read_text
from bakeoff.doors.eval.config import path_in, printable
from bakeoff.errors import UsageError
from bakeoff.models.providers import BUILT_IN, known_providers
from bakeoff.plan import SubjectSpec, check_options
from bakeoff.toolchains.user_code import FILE, LANGUAGES, Language, split_path

if TYPE_CHECKING:
    from bakeoff.doors.eval.promptfoo import Notes

_OF_A_PROVIDER = ("id", "label", "config", "transform", "prompts", "delay")
_NAMES = {"azureopenai": "azure", "vertex": "google-cloud", "togetherai": "together", "dashscope": "alibaba"}
_APIS = ("chat", "messages", "responses", "completion", "converse", "text-generation")
_WITHOUT_CHAT = ("openai:completion", "azure:completion", "anthropic:completion")
_OTHER_APIS = re.compile(
    r"(embeddings?|image|video|audio|realtime|live|assistant|agents?|moderation|speech|transcription|codex\S*|claude-\S*sdk"
    r"|feature-extraction|sentence-similarity|(text|token)-classification|knowledge-base|nova-\S+)(:.*)?"
)
_OPTIONS = {
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"), "max_tokens"),
    **dict.fromkeys(("maxTokens", "max_new_tokens", "num_predict"), "max_tokens"),
    **dict.fromkeys(("systemPrompt", "system", "systemInstruction"), "system"),
    "temperature": "temperature",
    "seed": "seed",
}
_SETTINGS = {
    **{name: name for name in ("top_p", "top_k", "presence_penalty", "frequency_penalty", "logit_bias")},
    "stop_sequences": "stop_sequences",
    **dict.fromkeys(("stop", "stopSequences"), "stop_sequences"),
    "topP": "top_p",
    "topK": "top_k",
}
_IN_THE_BODY = ("reasoning_effort", "reasoning", "verbosity", "response_format", "store", "user", "metadata")
_OF_SDKS = {
    "bedrock": {"region": "region_name"},
    "google-cloud": {"region": "location", "projectId": "project"},
    "azure": {"apiVersion": "api_version"},
}
_HARMLESS = ("cost", "inputCost", "outputCost", "showThinking", "timeout", "maxRetries", "organization", "label")
_ENV = re.compile(r"\{\{\s*(?:process\.)?env\.(\w+)\s*\}\}")
_HTTP = ("url", "method", "headers", "body", "queryParams", "transformResponse", "responseParser")


class LeftOut(Exception):
    """A part of a configuration that is not supported, with its place."""

    def __init__(self, key: Key, why: str) -> None:
        super().__init__(why)
        self.key = key


def model_name(text: str) -> str | None:
    """Return our name of a promptfoo model, or None if we do not have its provider."""
    given, _, rest = text.partition(":")
    name = _NAMES.get(given, given)
    api, colon, model = rest.partition(":")
    if _OTHER_APIS.fullmatch(rest) or f"{name}:{api}" in _WITHOUT_CHAT:
        return None
    if colon and api in _APIS:
        rest = model
        name = "openai-responses" if (name, api) == ("openai", "responses") else name
    return f"{name}:{rest}" if rest and name in known_providers() else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question after a similar name; nothing if the name is known, or no other is similar."""
    near = get_close_matches(name, known, n=1, cutoff=0.75)
    return f" (did you mean {near[0]!r}?)" if near and near[0] != name else ""


def echo(prompt: str) -> str:
    """Answer with the prompt, as the provider `echo` does."""
    return prompt


def provider_subjects(item: Any, key: Key, notes: "Notes", filled: Callable[[Any], Any]) -> Iterator[SubjectSpec]:
    """Yield the subjects of a provider. One that is not supported is noted, with its place.

    `filled` fills in variables of the environment; those in keys and headers stay as names.
    """
    if isinstance(item, dict) and "id" not in item and len(item) == 1:  # `openai:gpt-4o: {config: …}`
        [(name, inner)] = item.items()
        item = {"id": name, **(inner if isinstance(inner, dict) else {})}
    path = path_in(item) if isinstance(item, str) else None
    if path is not None and Path(path).suffix in (".yaml", ".yml", ".json"):
        file = notes.placed.file.parent / path
        found = read_yaml(file).value
        for each in found if isinstance(found, list) else [found]:
            yield from provider_subjects(each, key, notes, filled)
        return
    given: dict[str, Any] = item if isinstance(item, dict) else {"id": item}
    if not isinstance(text := given.get("id"), str):
        notes.problem(key, "a provider has to be a text such as `openai:gpt-5`, or an object with an `id`")
        return
    config: dict[str, Any] = dict(given["config"]) if isinstance(given.get("config"), dict) else {}
    for name in ("inferenceConfig", "generationConfig"):
        config |= config.pop(name) if isinstance(config.get(name), dict) else {}
    kept = {name: config[name] for name in ("apiKey", "headers") if name in config}
    given = filled({**given, "config": {**config, **dict.fromkeys(kept)}})
    given["config"] |= kept
    try:
        yield _subject(given["id"], given, key, notes)
    except LeftOut as part:
        notes.warn(part.key, f"{part}: {text!r} is left out")
    except UsageError as error:
        notes.problem((*key, "config"), str(error))


def _subject(text: str, given: dict[str, Any], key: Key, notes: "Notes") -> SubjectSpec:
    folder = notes.placed.file.parent
    label = printable(str(given.get("label") or text)) or "provider"
    config = given["config"]
    for name in given:
        if name not in _OF_A_PROVIDER or (name == "prompts" and given[name]):
            raise LeftOut((*key, name), "is not supported")
    path = text.removeprefix("python:").removeprefix("javascript:")
    if text.startswith("exec:"):
        words = shlex.split(text.removeprefix("exec:"))
        options: dict[str, Any] = {"argv": [*words, "{prompt}", json.dumps({"config": config}), "{}"]}
        options |= {"input": "argument", "sandbox": "none", **({} if folder == Path() else {"folder": str(folder)})}
        spec = SubjectSpec(kind="command", name=label, options=options, revision=command_revision(words, folder))
    elif path.startswith((FILE, "./", "../")) or split_path(path)[1] or Path(path).suffix in LANGUAGES:
        spec = _code(path, label, config, key, folder)
    elif re.match(r"https?(:|$)", text):
        spec = _http(text, label, config, key, folder)
    elif text == "echo":
        spec = SubjectSpec(kind="function", name=label, options={"target": f"{__name__}:echo"})
    elif (model := model_name(text)) is not None:
        spec = _model(model, label, config, key)
    else:
        raise LeftOut(
            key, f"is not a model that is known here{did_you_mean(text.partition(':')[0], known_providers())}"
        )
    return spec.model_copy(update={"transform": steps_of(given.get("transform"), (*key, "transform"), folder)})


def steps_of(transform: Any, key: Key, folder: Path) -> tuple[str | dict[str, str], ...]:
    """Return the steps of a transform: code of the user, inline or in a file."""
    if not transform:
        return ()
    if not isinstance(transform, str):
        raise LeftOut(key, "has to be a text")
    path = path_in(transform)
    if path is None:
        return ({"javascript": transform},)
    code, language = code_file(transform, key, folder)
    return ({language: code},)


def code_file(text: str, key: Key, folder: Path) -> tuple[str, Language]:
    """Return the `file://path[:function]` of a file with code, from here, and its language."""
    path, name = split_path(f"{FILE}{path_in(text) or text}")
    if Path(path).suffix not in LANGUAGES:
        raise LeftOut(key, f"{path!r} is neither JavaScript nor Python")
    if not (folder / path).is_file():
        raise LeftOut(key, f"there is no file {str(folder / path)!r}")
    return f"{FILE}{folder / path}{f':{name}' if name else ''}", LANGUAGES[Path(path).suffix]


def _code(text: str, label: str, config: dict[str, Any], key: Key, folder: Path) -> SubjectSpec:
    code, language = code_file(text, key, folder)
    path = Path(split_path(code)[0])
    options: dict[str, Any] = {"language": language, "code": code, **({"config": config} if config else {})}
    if "vars" in read_text(path):  # the plan puts the values of each case there
        options["variables"] = {}
    return SubjectSpec(kind="code", name=label, options=options, revision=command_revision([path.name], path.parent))


def _http(text: str, label: str, config: dict[str, Any], key: Key, folder: Path) -> SubjectSpec:
    for name in config:
        if name not in _HTTP:
            raise LeftOut((*key, "config", name), "is not supported")
    url = str(config.get("url") or text)
    if "://" not in url:
        raise LeftOut((*key, "config"), "has no `url`")
    body = config.get("body")
    if isinstance(body, str) and body.lstrip().startswith(("{", "[")):
        try:
            body = json.loads(body)
        except ValueError:
            raise LeftOut((*key, "config", "body"), "is no JSON before its templates are filled") from None
    headers = {name: _ENV.sub(r"${\1}", str(value)) for name, value in (config.get("headers") or {}).items()}
    code = config.get("transformResponse") or config.get("responseParser") or ""
    if code and path_in(code) is not None:
        code = code_file(code, (*key, "config"), folder)[0]
    method = str(config.get("method") or ("GET" if body is None else "POST"))
    options = {"url": url, "method": method, "headers": headers, "body": body, "code": code}
    options |= {"params": {name: str(value) for name, value in (config.get("queryParams") or {}).items()}}
    options = {name: value for name, value in options.items() if value}
    return SubjectSpec(kind="http", name=label, options={**options, "variables": {}})


def _model(model: str, label: str, config: dict[str, Any], key: Key) -> SubjectSpec:
    provider, _, _ = model.partition(":")
    options: dict[str, Any] = {"model": model, "chat": True}
    settings: dict[str, Any] = {}
    body: dict[str, Any] = dict(config.get("passthrough") or {})
    own: dict[str, Any] = {}
    for name, value in config.items():
        if value is None or name in (*_HARMLESS, *_ADDRESS, "passthrough"):
            continue
        if str(value).startswith("file:"):
            raise LeftOut((*key, "config", name), "is in a file, which is not supported")
        if name in _OPTIONS and not isinstance(value, dict | list):
            options[_OPTIONS[name]] = value
        elif name in _SETTINGS:
            settings[_SETTINGS[name]] = [value] if name == "stop" and isinstance(value, str) else value
        elif name in _IN_THE_BODY and _speaks_openai(provider):
            body[name] = value
        elif name in _OF_SDKS.get(provider, {}):
            own[_OF_SDKS[provider][name]] = value
        else:
            raise LeftOut((*key, "config", name), "is not supported")
    if body:
        settings["extra_body"] = body
    options |= {"settings": settings} if settings else {}
    if reached := _address(provider, config, own, key):
        options["providers"] = {provider: reached}
    from bakeoff.subjects.model import ModelOptions  # imports SDKs that take a second to load

    check_options(options, ModelOptions, label)
    return SubjectSpec(kind="model", name=label, options=options)


_OWN_APIS = ("bedrock", "google-cloud", "cohere", "huggingface")
_ADDRESS = ("apiBaseUrl", "apiHost", "baseUrl", "apiKey", "apiKeyEnvar")


def _speaks_openai(provider: str) -> bool:
    wire = BUILT_IN[provider].wire if provider in BUILT_IN else ""
    return wire in ("openai", "responses") or (wire == "pydantic-ai" and provider not in _OWN_APIS)


def _address(provider: str, config: Mapping[str, Any], own: dict[str, Any], key: Key) -> dict[str, Any]:
    """Return how a provider is reached other than usual. Keys stay in variables of the environment."""
    known = BUILT_IN.get(provider)
    named = _ENV.fullmatch(str(config.get("apiKey", "")))
    if config.get("apiKey") is not None and named is None:
        raise LeftOut((*key, "config", "apiKey"), "is a key in a file: set it in a variable, and write `apiKeyEnvar`")
    variable = named[1] if named else config.get("apiKeyEnvar")
    base = config.get("apiBaseUrl") or config.get("baseUrl")
    if base is None and config.get("apiHost"):
        base = f"https://{config['apiHost']}/{'openai/v1' if provider == 'azure' else 'v1'}"
    if known is not None and variable in (*known.keys, None) and base is None:
        return {"options": own} if own else {}
    usual = known.base_url if known is not None else None
    if base is not None and not _speaks_openai(provider):
        raise LeftOut((*key, "config"), "has an address of its own, which is supported for APIs like OpenAI's")
    if (base or usual) is None and (known is None or known.wire != "pydantic-ai"):
        raise LeftOut((*key, "config"), "names a key without an address, which is not supported")
    found = {"base_url": base or usual, "key_variable": variable or (known.keys[0] if known and known.keys else None)}
    return {name: value for name, value in found.items() if value is not None}
