"""Compare meanings: `semantic` scores the cosine of the embeddings of the output and the expected text."""

import importlib
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.threads import call
from bakeoff.errors import GraderError, InfraError, UsageError
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score
from bakeoff.scorers.configurable import NAMED_FUNCTION, ComparingScorer
from bakeoff.scorers.registry import scorer
from bakeoff.scorers.text import as_text

if TYPE_CHECKING:
    from bakeoff.models.access import ProviderAccess

Vectors: TypeAlias = Sequence[Sequence[float]]
Embed: TypeAlias = Callable[[list[str]], Vectors | Awaitable[Vectors]]

_USUAL = "all-MiniLM-L6-v2"
_SECONDS = 60.0


@scorer("semantic", main="expected")
@dataclass(frozen=True, kw_only=True)
class Semantic(ComparingScorer):
    """Scores the cosine of the embeddings of the output and the expected text; negative values count as 0.

    Embeddings come from `embed`, a function from texts to vectors; from `model`, a `provider:model` with the OpenAI
    API; or else from sentence-transformers, which must be installed.
    """

    embed: Annotated[Embed | None, NAMED_FUNCTION] = None
    model: str | None = None
    name: str = "semantic"
    only_recordings: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.embed is not None and self.model is not None:
            raise UsageError(f"scorer {self.name!r}: give `embed` or `model`, not both")
        if self.model is not None:
            _ = self.access
        elif self.embed is None:
            _sentence_transformers(self.name)

    @cached_property
    def access(self) -> "ProviderAccess":
        """Return the access to the provider of the embeddings. Raise UsageError if it does not speak the OpenAI API."""
        from bakeoff.scorers.judging import access_to

        found = access_to(self.model or "", read_environment())
        if found.provider.wire not in ("openai", "responses"):
            raise UsageError(
                f"scorer {self.name!r}: {self.model!r} does not use the OpenAI API: use `embed` for its embeddings"
            )
        return found

    def lacks(self) -> list[str]:
        return [] if self.model is None else self.access.lacks()

    def secrets(self) -> dict[str, str]:
        return {} if self.model is None else self.access.secrets()

    def offline(self) -> Self:
        return replace(self, only_recordings=self.model is not None)

    async def compare(self, given: ScoreInput) -> Score:
        """Return the cosine similarity of the two texts, with negative values as 0.

        Unscored under strict replay, because embeddings are not recorded. Equal or empty texts need no model.
        """
        if self.only_recordings:
            return self.scored(None, "embeddings are not recorded, and replay is strict")
        texts = [as_text(given.expected), as_text(given.output)]
        same = texts[0].strip() == texts[1].strip()
        if same or not all(text.strip() for text in texts):
            return self.scored(float(same), "" if same else "one of the texts is empty")
        if self.embed is not None:
            vectors: Any = await call(self.embed, texts)
        elif self.model is not None:
            vectors = await _asked(self.access, texts)
        else:
            vectors = await call(lambda: self._transformer.encode(texts))
        cosine = cosine_of(*_checked(vectors, self.name))
        reason = f"the cosine similarity is {cosine:.3f}"
        return self.scored(min(1.0, max(0.0, cosine)), reason, rationale=reason, cosine=cosine)

    @cached_property
    def _transformer(self) -> Any:
        return _sentence_transformers(self.name).SentenceTransformer(_USUAL)


def cosine_of(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of the angle between two vectors: 1 if they have the same direction."""
    lengths = math.hypot(*one) * math.hypot(*other)
    return math.fsum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0


def _checked(vectors: Any, name: str) -> list[list[float]]:
    """Return two vectors of one length, from any kind of array."""
    try:
        found = [[float(number) for number in vector] for vector in vectors]
    except (TypeError, ValueError) as error:
        raise GraderError(f"scorer {name!r}: the embeddings are not lists of numbers: {error}") from error
    if len(found) != 2 or len(found[0]) != len(found[1]) or not all(map(math.isfinite, found[0] + found[1])):
        raise GraderError(f"scorer {name!r}: the embeddings of two texts are not two vectors of one length")
    return found


def _sentence_transformers(name: str) -> Any:
    try:
        return importlib.import_module("sentence_transformers")
    except ImportError as error:
        raise UsageError(
            f"scorer {name!r} needs embeddings: `pip install sentence-transformers`, or give it `embed`, a function "
            "from texts to vectors, or `model`, such as `openai:text-embedding-3-small`"
        ) from error


async def _asked(access: "ProviderAccess", texts: list[str]) -> list[Any]:
    import httpx2

    from bakeoff.models.clients import http_client

    base, key = access.provider.url(access.environment), access.provider.key(access.environment)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    body = {"model": access.name.model, "input": texts}
    async with http_client(base, _SECONDS) as client:
        try:
            response = await client.post(f"{base}/embeddings", json=body, headers=headers)
            response.raise_for_status()
            return [item["embedding"] for item in response.json()["data"]]
        except httpx2.HTTPError as error:
            raise InfraError(f"{access.name}: no embeddings: {error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise InfraError(f"{access.name}: its answer has no embeddings: {error!r}") from error
