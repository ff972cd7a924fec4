"""Every message of a validation is in our words, and no secret is in it."""

import re
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from bakeoff._kernel.model import first_problem
from bakeoff._kernel.text import expectation, in_our_words

PYDANTICS = re.compile(
    r"Input should|should (be|have)|Extra inputs|Field required|[Tt]ag|valid (string|integer|number|dict)"
)


class Colour(Enum):
    RED = "red"


class Left(BaseModel):
    type: Literal["left"]


class Right(BaseModel):
    type: Literal["right"]


class Everything(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    needed: int
    whole: int = 1
    number: float = 1.0
    truth: bool = True
    text: Annotated[str, Field(min_length=1, max_length=3, pattern="^[a-z]*$")] = "a"
    share: Annotated[float, Field(ge=0, lt=1)] = 0.5
    items: Annotated[tuple[str, ...], Field(min_length=1, max_length=2)] = ("a",)
    names: set[str] = set()
    values: dict[str, int] = {}
    choice: Literal["left", "right"] = "left"
    colour: Colour = Colour.RED
    path: Path = Path()
    nothing: None = None
    env: dict[str, int] = {}
    code: Annotated[str, Field(min_length=3)] = "abc"
    side: Annotated[Left | Right, Field(discriminator="type")] | None = None
    own: int = 0

    @field_validator("own")
    @classmethod
    def _small(cls, value: int) -> int:
        if value > 1:
            raise ValueError(f"{value} is too many, write 1")
        return value


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"needed": None}, "null: has to be a whole number"),
        ({"whole": 1.5}, "1.5: has to be a whole number"),
        ({"number": "many"}, "'many': has to be a number"),
        ({"number": float("nan")}, "nan: has to be a finite number"),
        ({"truth": "perhaps"}, "'perhaps': has to be true or false"),
        ({"text": 5}, "5: has to be a text: put it in quotes"),
        ({"text": ""}, "'': must not be empty"),
        ({"text": "long"}, "'long': may have at most 3 characters"),
        ({"text": "A"}, "'A': does not match ^[a-z]*$"),
        ({"share": -1}, "-1: has to be at least 0"),
        ({"share": 1}, "1: has to be less than 1"),
        ({"items": "a"}, "'a': has to be a list"),
        ({"items": []}, "[]: needs at least 1"),
        ({"items": ["a", "b", "c"]}, "['a', 'b', 'c']: may have at most 2"),
        ({"names": 5}, "5: has to be a list"),
        ({"values": ["a"]}, "['a']: has to be an object, with keys and values"),
        ({"choice": "lefft"}, "'lefft': has to be 'left' or 'right': did you mean 'left'?"),
        ({"colour": "blue"}, "'blue': has to be 'red'"),
        ({"path": 5}, "5: has to be a text"),
        ({"nothing": 5}, "5: has to be null"),
        ({"env": {"KEY": "sk-secret"}}, "has to be a whole number"),
        ({"code": "a"}, "'a': needs at least 3 characters"),
        ({"side": {"type": "up"}}, "an object with type: has to be of one of the types 'left', 'right'"),
        ({"side": {}}, "{}: needs the key 'type'"),
        ({"own": 5}, "5 is too many, write 1"),
        ({"unknown": 5}, "is not a key that is known here"),
    ],
)
def test_an_error_names_the_value_and_what_it_has_to_be(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Everything.model_validate({"needed": 1, **given})
    (item,) = caught.value.errors(include_url=False)
    assert in_our_words(item) == told
    assert not PYDANTICS.search(expectation(item))


def test_the_first_problem_has_its_place_and_not_its_value() -> None:
    with pytest.raises(ValidationError) as caught:
        Everything.model_validate({"values": {"a": "secret"}, "needed": 1})
    assert first_problem(caught.value) == "values.a: has to be a whole number"
    with pytest.raises(ValidationError) as caught:
        Everything.model_validate_json("{")
    assert first_problem(caught.value).startswith("this is not JSON: EOF while parsing")
    with pytest.raises(ValidationError) as caught:
        Everything.model_validate({})
    assert first_problem(caught.value) == "needed: is missing"


def test_a_kind_of_error_without_words_of_ours_does_not_sound_like_pydantic() -> None:
    class Typed(BaseModel):
        call: type = int

    with pytest.raises(ValidationError) as caught:
        Typed.model_validate({"call": 5})
    (item,) = caught.value.errors(include_url=False)
    assert in_our_words(item) == "5: has to be a type"


def test_only_the_module_of_texts_reads_messages_of_pydantic() -> None:
    source = Path(__file__).parents[2] / "src" / "bakeoff"
    found = {
        path.name
        for path in source.rglob("*.py")
        if re.search(r"""\[["']msg["']\]""", path.read_text(encoding="utf-8"))
    }
    assert found == {"text.py"}
