"""Whatever stands in a configuration, the answer is an experiment or a message."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vcr_core.config.resolve import resolve_run
from vcr_core.config.schema import RunFile
from vcr_core.config.sweep import expand
from vcr_core.errors import VcrError

KEYS = st.sampled_from(
    [
        *RunFile.__struct_fields__,
        "name",
        "steps",
        "eps",
        "norm",
        "target",
        "frames",
        "params",
        "names",
        "ssim",
        "limit",
        "sigma",
        "0",
        "",
        "matrix",
    ]
)
WORDS = st.sampled_from(
    ["none", "net", "ifgsm", "ifgsm.strong", "jpeg+rotate", "+", ".", "/", "a/b", "8/255", "1/0",
     "nan", "linf", "auto", ""]
)  # fmt: skip
VALUES = st.recursive(
    WORDS | st.text(max_size=5) | st.integers() | st.floats() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=6)
OVERRIDES = st.lists(
    st.builds("{}.{}={}".format, KEYS, KEYS, WORDS | st.text(max_size=5)) | st.text(max_size=9),
    max_size=3,
)


@settings(max_examples=120, deadline=None)
@given(DOCUMENTS, OVERRIDES, st.booleans())
def test_a_run_resolves_or_says_why_not(
    document: dict[str, Any], overrides: list[str], has_model: bool
) -> None:
    if has_model:
        document = {**document, "model": "net"}
    try:
        resolved = resolve_run(document, overrides=overrides)
    except VcrError as error:
        assert str(error)  # noqa: PT017 - either outcome is right
    else:
        assert resolved.toml


@settings(max_examples=40, deadline=None)
@given(DOCUMENTS, st.dictionaries(KEYS, st.lists(VALUES, max_size=2) | VALUES, max_size=2), VALUES)
def test_a_sweep_expands_or_says_why_not(
    document: dict[str, Any], matrix: dict[str, Any], rule: Any
) -> None:
    try:
        points = expand({**document, "model": "net", "matrix": matrix, "exclude": rule})
    except VcrError as error:
        assert str(error)  # noqa: PT017 - either outcome is right
    else:
        assert all(point.resolved or point.problem for point in points)


def test_the_shipped_presets_are_run_and_sweep_files(monkeypatch: pytest.MonkeyPatch) -> None:
    import tomllib
    from importlib import resources

    root = resources.files("vcr_core") / "presets"
    files = {f"{kind}/{path.name}": tomllib.loads(path.read_text("utf-8"))
             for kind in ("run", "sweep") for path in (root / kind).iterdir()}  # fmt: skip
    assert {"run/demo.toml", "sweep/demo.toml"} <= set(files)
    for name, document in files.items():
        extra = set(document) - set(RunFile.__struct_fields__)
        assert ("matrix" in extra) == name.startswith("sweep/")
        assert extra <= {"matrix", "include", "exclude"}
