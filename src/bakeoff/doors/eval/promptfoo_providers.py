"""Turn the providers of promptfoo into subjects. Those that run commands or code are named, and left out."""

from typing import TYPE_CHECKING, Any

from bakeoff._kernel.yaml import Key
from bakeoff.doors.eval.suite import printable
from bakeoff.errors import UsageError
from bakeoff.models.providers import known_providers, parse_model_name
from bakeoff.plan import SubjectSpec, check_options

if TYPE_CHECKING:
    from bakeoff.doors.eval.promptfoo import Notes

_SETTINGS = {
    "temperature": "temperature",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "seed": "seed",
    "apiBaseUrl": "base_url",
    "systemPrompt": "system",
}
_APIS = ("chat", "messages", "responses", "completion")  # between the provider and the model
_NO_CHAT = ("embedding", "embeddings", "image", "realtime", "assistant", "moderation", "speech")
_PROGRAMS = ("exec", "python", "file", "golang", "ruby", "script")


def model_name(text: str) -> str | None:
    """Return our name of a model of promptfoo, or None if we have no such provider."""
    provider, _, rest = text.partition(":")
    api, colon, model = rest.partition(":")
    if colon and api in _APIS:
        rest = model
    if not rest or api in _NO_CHAT or provider not in known_providers():
        return None
    return f"{provider}:{rest}"


def echo(prompt: str) -> str:
    """Answer with the prompt, as the provider `echo` does."""
    return prompt


def provider_subject(item: Any, key: Key, notes: "Notes") -> SubjectSpec | None:
    """Return the subject of a provider, or None after naming what is not understood."""
    if isinstance(item, dict) and "id" not in item and len(item) == 1:  # `openai:gpt-4o: {config: …}`
        name, inner = next(iter(item.items()))
        item = {"id": name, **(inner if isinstance(inner, dict) else {})}
    given: dict[str, Any] = item if isinstance(item, dict) else {"id": item}
    text = given.get("id")
    if not isinstance(text, str):
        notes.problem(key, "a provider has to be a text such as `openai:gpt-5`, or an object with an `id`")
        return None
    notes.unused(key, item, ("id", "label", "config"))
    label = printable(str(given.get("label") or text)) or "provider"
    if text == "echo":  # answers with the prompt
        return SubjectSpec(kind="function", name=label, options={"target": f"{__name__}:echo"})
    if text.partition(":")[0] in _PROGRAMS or text.startswith(("http:", "https:", "./", "/")):
        words = "runs a program or an address of its own, which is left out: put a `command` or `function` into"
        notes.warn(key, f"{text!r} {words} the `subjects` of a bakeoff.yaml")
        return None
    model = model_name(text)
    if model is None:
        notes.warn(key, f"{text!r} is not a model that is known here: it is left out")
        return None
    return _model(model, label, given.get("config"), key, notes)


def _model(model: str, label: str, config: Any, key: Key, notes: "Notes") -> SubjectSpec | None:
    options: dict[str, Any] = {"model": model}
    settings = config if isinstance(config, dict) else {}
    notes.unused((*key, "config"), settings, tuple(_SETTINGS))
    for theirs, ours in _SETTINGS.items():
        value = settings.get(theirs)
        if value is not None:
            options[ours] = value
    if (base := options.pop("base_url", None)) is not None:
        options["providers"] = {parse_model_name(model).provider: {"base_url": base}}
    from bakeoff.subjects.model import ModelOptions  # imports SDKs that take a second to load

    try:
        check_options(options, ModelOptions, label)
    except UsageError as error:
        notes.problem((*key, "config"), str(error))
        return None
    return SubjectSpec(kind="model", name=label, options=options)
