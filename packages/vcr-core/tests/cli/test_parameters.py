"""Parameters in words."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from msgspec import UNSET, Meta, Struct, UnsetType, field
from vcr_core.parameters import parameters


class Params(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    steps: Annotated[int, Meta(ge=1, le=100, description="how often")] = 10
    alpha: Annotated[float, Meta(gt=0)] | None = None
    mode: Literal["fast", "slow"] = "fast"
    sizes: list[int] = field(default_factory=lambda: [1, 2])
    file: Annotated[str, Meta(description="where")]
    flag: bool = False
    extra: str | UnsetType = UNSET
    pair: tuple[float, float] = (0.0, 1.0)


@pytest.fixture
def found():
    return {param.name: param for param in parameters(Params)}


def test_no_struct_has_no_parameters():
    assert parameters(None) == []


def test_types_defaults_and_descriptions(found):
    assert list(found) == list(Params.__struct_fields__)
    assert (found["steps"].type, found["steps"].default) == ("integer", 10)
    assert found["steps"].description == "how often"
    assert "1" in found["steps"].allowed
    assert "100" in found["steps"].allowed
    assert found["alpha"].type == "number or none"
    assert found["alpha"].default is None
    assert found["mode"].type == "word"
    assert "'slow'" in found["mode"].allowed
    assert found["sizes"].default == [1, 2]
    assert found["flag"].type == "boolean"
    assert list(found["pair"].default) == [0.0, 1.0]
    assert found["extra"].type == "text"


def test_required_and_unset(found):
    assert found["file"].required
    assert found["file"].description == "where"
    assert not found["extra"].required
    assert found["extra"].default is None
