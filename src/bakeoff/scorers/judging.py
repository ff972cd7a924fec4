"""Ask a judge. Calls pass the provider's rate limit, count against the budget, and are recorded or replayed."""

import json
import re
from collections.abc import AsyncIterator, Container, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import JsonValue
from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, TextPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.settings import ModelSettings

from bakeoff._kernel.model import fingerprint
from bakeoff.errors import GraderError, InfraError, SubjectError, SubjectTimeout
from bakeoff.models.access import OpenProvider, ProviderAccess
from bakeoff.models.caller import Caller
from bakeoff.models.clients import preload as preload_sdk
from bakeoff.models.providers import known_model_name, known_providers
from bakeoff.protocols import ON_DEMAND, ScoreInput, Task
from bakeoff.replay.store import recordings_of
from bakeoff.scorers.model_judge import PROMPTS, object_schema
from bakeoff.scorers.values import read_json

if TYPE_CHECKING:
    from bakeoff.scorers.mcp.scorer import CallGrader
    from bakeoff.scorers.model_judge import ModelScorer

Asker: TypeAlias = "ModelScorer | CallGrader"
"""A scorer that asks a model, with access to the provider and the settings of each call."""

_PROFILED = {"anthropic": "anthropic", "openrouter": "openrouter", "gateway": "vercel"}
"""Providers of models of which some support schemas and some do not, with their names in pydantic-ai."""

# Small models do not know when to stop.
_EMBEDDED_TOKENS = 600
_EMBEDDED_LENGTH, _EMBEDDED_NESTED_LENGTH, _EMBEDDED_ITEMS = 300, 120, 6

# The parts that differ between calls come last, so that providers can cache the rest.
_FORM = PROMPTS["form"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a judge in our words, without the judged texts, which are put between marks."""

    prompt: str
    schema: Mapping[str, Any]  # of the answer
    reply: str = ""  # says what the answer must be; by default, the schema does
    about: str = "texts"  # names the judged texts
    longest: int = 20_000  # characters of each text

    def messages(self, texts: Mapping[str, str], repeat: int = 0) -> list[ModelMessage]:
        """Return the messages to the judge, with each text between marks that its author cannot predict."""
        shown = {name: shortened(text, self.longest) for name, text in texts.items()}
        code = code_of(self.prompt, dict(self.schema), shown, repeat)
        reply = self.reply or _FORM["reply"].format(schema=json.dumps(self.schema, ensure_ascii=False))
        rules = [_FORM["rules"].format(code=code, name=list(shown)[-1])] if shown else []
        after = _FORM["after"].format(code=code, about=self.about)
        message = f"{fenced(shown, code)}\n\n{after}" if shown else "Reply with the JSON object."
        system = "\n\n".join([self.prompt, reply, *rules])
        return [ModelRequest(parts=[SystemPromptPart(system), UserPromptPart(message)])]


def choice_question(criteria: str, choices: Mapping[str, str], longest: int, prompt: str | None = None) -> Question:
    """Return a question that asks which statement about an answer is true; `choices` has the statements by letter."""
    listed = "\n".join(f"{letter}: {text}" for letter, text in choices.items())
    # The criteria come last, so that they are left alone if they mention the choices.
    asked = (prompt or _FORM["choose"]).replace("{choices}", listed).replace("{criteria}", criteria)
    fields = {"rationale": {"type": "string"}, "choice": {"type": "string", "enum": list(choices)}}
    schema = object_schema(fields)
    reply = f"Reply with a JSON object that has {_FORM['choice'].format(letters=', '.join(choices))}"
    return Question(asked, schema, reply, about="answer", longest=longest)


class UnreadableVerdict(GraderError):
    """The error raised if a judge's answer does not fit the schema."""


def access_to(model: str, environment: Mapping[str, str]) -> ProviderAccess:
    """Return the access to a judge's provider. Raise UsageError if no provider serves the model."""
    providers = known_providers()
    name = known_model_name(model, providers)
    return ProviderAccess(name, providers[name.provider], environment)


def preload(access: ProviderAccess) -> None:
    """Import the modules that are needed to ask this judge."""
    import genai_prices.data  # noqa: F401 - its usage is priced
    import jsonschema.validators  # type: ignore[import-untyped]  # noqa: F401 - its answers are checked

    parameters_for(access, Question("", {}))
    preload_sdk(access.provider)


async def ask(judge: Asker, given: ScoreInput, question: Question, texts: Mapping[str, str]) -> list[str]:
    """Ask the judge one question `repeats` times in turn, and return its answers.

    The repeat is also the seed, so that repeats can differ. Raises `GraderError` if the judge fails or is too slow:
    that is never the subject's fault.
    """
    access, limits = judge.access, given.case.limits
    outside = {"case_id": given.case.id, "limits": limits, "spend": given.spend, "resources": given.resources}
    task = given.asking or Task.alone(limits.score_seconds, **outside)
    answers: list[str] = []
    async with _opened(judge, given) as provider:
        for repeat in range(judge.repeats):
            settings = ModelSettings()
            if judge.temperature is not None:
                settings["temperature"] = judge.temperature
            if most := judge.max_tokens or (_EMBEDDED_TOKENS if access.provider.wire == "embedded" else None):
                settings["max_tokens"] = most
            if access.provider.wire != "anthropic":  # has no seed
                settings["seed"] = repeat
            caller = Caller(
                access.name,
                provider,
                replace(task, subject=f"{task.subject}, judged by {judge.name}"),
                settings,
                remote=access.provider.wire not in ("scripted", "custom"),
                endpoint=access.endpoint,
                recordings=recordings_of(given.resources),
            )
            try:
                answer = await caller.ask(question.messages(texts, repeat), parameters_for(access, question))
            except (SubjectError, SubjectTimeout) as error:  # an error of the judge, not of the subject
                raise GraderError(f"the judge cannot answer: {error}") from error
            except InfraError as error:
                error.args = (f"the judge {error}",)
                raise
            answers.append("".join(part.content for part in answer.response.parts if isinstance(part, TextPart)))
    return answers


@asynccontextmanager
async def _opened(judge: Asker, given: ScoreInput) -> AsyncIterator[OpenProvider | None]:
    """Yield the provider that the run has opened. Outside of a run, open it for this call."""
    if judge.only_recordings:
        yield None
    elif judge.access.key in given.resources:
        yield given.resources[judge.access.key]
    elif ON_DEMAND in given.resources:
        opened = await given.resources[ON_DEMAND].open([judge.access], {})
        yield opened[judge.access.key]
    else:
        async with judge.access.open() as provider:
            yield provider


def parameters_for(access: ProviderAccess, question: Question) -> ModelRequestParameters:
    """Return the request parameters, with the schema if the model is known to support schemas."""
    if not _keeps_to_schemas(access):
        return ModelRequestParameters()
    schema = dict(question.schema)
    wanted = _bounded(schema) if access.provider.wire == "embedded" else schema  # not all providers accept bounds
    return ModelRequestParameters(
        output_mode="native", output_object=OutputObjectDefinition(json_schema=wanted, name="verdict")
    )


def _bounded(schema: Any, longest: int = _EMBEDDED_LENGTH) -> Any:
    """Return the schema with limits on the lengths of texts and lists."""
    if isinstance(schema, list):
        return [_bounded(item, longest) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "string" and "enum" not in schema:
        return {"maxLength": longest, **schema}
    if schema.get("type") == "array":
        schema, longest = {"maxItems": _EMBEDDED_ITEMS, **schema}, _EMBEDDED_NESTED_LENGTH
    return {name: _bounded(value, longest) for name, value in schema.items()}


def _keeps_to_schemas(access: ProviderAccess) -> bool:
    """Tell whether the model supports schemas, by names alone: recordings must be found without the provider."""
    provider = access.provider
    if provider.wire in ("scripted", "custom") or provider.name == "deepseek":
        return False
    if provider.name in _PROFILED:
        dialect: Any = infer_provider_class(_PROFILED[provider.name])
        profile = dialect.model_profile(access.name.model) or {}
        return bool(profile.get("supports_json_schema_output", False))
    return True


def read_answer(said: str, schema: Mapping[str, Any]) -> JsonValue:
    """Read the JSON of a judge's answer. Nothing is guessed from the text around it.

    Raises `UnreadableVerdict` if it does not fit the schema, or if it has several code blocks: one of them may be
    quoted from the judged answer.
    """
    from jsonschema.validators import validator_for  # slow to import

    unreadable = f"the judge's verdict cannot be read: {said[:200]!r}"
    if said.count("```") > 2:  # more than one block: one may be quoted from the answer
        raise UnreadableVerdict(unreadable)
    try:
        answer, _ = read_json(said)
    except ValueError as error:
        raise UnreadableVerdict(unreadable) from error
    if not validator_for(schema)(schema).is_valid(answer):
        raise UnreadableVerdict(unreadable)
    return answer


def read_choice(said: str, letters: Container[str]) -> tuple[str, str]:
    """Return the chosen letter and the rationale. Models without support for schemas may write `b.` for `B`."""
    answer: Any = read_answer(said, {"type": "object", "required": ["choice"]})
    choice = answer["choice"]
    letter = choice.strip().rstrip(".:").upper() if isinstance(choice, str) else ""
    if letter not in letters:
        raise UnreadableVerdict(f"the judge's verdict cannot be read: {said[:200]!r}")
    return letter, str(answer.get("rationale", ""))


# --- texts shown to a judge ----------------------------------------------------------------------------------------

# The code in the marks is a hash of the texts between them, so no text can contain its own code. The same question
# always has the same code, so that recordings are found again.

_GAP = "[\u200c\u200d]*"  # joiners belong to some scripts and must not hide a mark
_MARKS = re.compile(
    rf"<{_GAP}\||\|{_GAP}>"  # <|im_end|> and similar marks end a message in ChatML
    rf"|<(?:{_GAP}<){{2,}}|>(?:{_GAP}>){{2,}}"  # our own marks
    r"|<<(?=/?SYS)|(?<=SYS)>>|\[(?=/?INST\])"  # Llama's marks
    r"|<(?=/?s>|(?:start|end)_of_turn>|/?system>|bos>|eos>)",
    re.IGNORECASE,
)
_HARMLESS = str.maketrans({"<": "‹", ">": "›", "[": "⁅", "|": "¦", "\u200c": None, "\u200d": None})
# Characters that people cannot see and models read: soft hyphens, zero-width and direction marks, fillers, variation
# selectors, tag characters, and control characters. The joiners of words and emoji stay.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def neutral(text: str) -> str:
    """Replace everything that resembles our marks or a chat format's with look-alikes."""
    return _MARKS.sub(lambda found: found[0].translate(_HARMLESS), _UNSEEN.sub("", text))


def shortened(text: str, most: int) -> str:
    """Return the beginning and the end of a long text, with a note of what is left out."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def code_of(*parts: object) -> str:
    """Return the code of the marks around these texts: 24 characters derived from their content."""
    return fingerprint(*parts)[:24]


def fenced(sections: Mapping[str, str], code: str) -> str:
    """Return the texts, each between its own marks."""
    return "\n\n".join(
        f"<<<{name} {code}>>>\n{neutral(text)}\n<<<end of {name} {code}>>>" for name, text in sections.items()
    )
