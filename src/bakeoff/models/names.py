"""How models are named: `provider:model`, or `maker/model` for one that the gateway routes."""

from dataclasses import dataclass

from bakeoff.errors import UsageError

GATEWAY = "gateway"


@dataclass(frozen=True, slots=True)
class ModelName:
    """A provider and what that provider calls the model."""

    provider: str
    model: str

    def __str__(self) -> str:
        routed = self.provider == GATEWAY and "/" in self.model
        return self.model if routed else f"{self.provider}:{self.model}"


def parse_model_name(text: str) -> ModelName:
    """Split at the first colon only: what follows may have more, as in `ollama:qwen3:0.6b`.

    A slash before it makes it the gateway's, as in `openai/gpt-oss:free`.
    """
    name = text.strip()
    provider, colon, model = (part.strip() for part in name.partition(":"))
    maker, slash, made = provider.partition("/")
    if slash and maker and made and (model or not colon):
        return ModelName(GATEWAY, name)
    if colon and provider and model and not slash:
        return ModelName(provider.lower(), model)
    raise UsageError(
        f"{text!r} does not name a model: write `provider:model`, such as `local:smollm2`, "
        "or `maker/model` for the gateway, such as `anthropic/claude-sonnet-4`"
    )
