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
        return self.model if self.provider == GATEWAY else f"{self.provider}:{self.model}"


def parse_model_name(text: str) -> ModelName:
    """Split at the first colon only: what follows may have more, as in `ollama:qwen3:0.6b`."""
    provider, colon, model = text.strip().partition(":")
    if colon and provider and model and "/" not in provider:
        return ModelName(provider.lower(), model)
    if not colon and "/" in text.strip().strip("/"):
        return ModelName(GATEWAY, text.strip())
    raise UsageError(
        f"{text!r} does not name a model: write `provider:model`, such as `local:smollm2`, "
        "or `maker/model` for the gateway, such as `anthropic/claude-sonnet-4`"
    )
