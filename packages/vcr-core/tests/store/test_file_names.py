from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from vcr_core.file_names import file_name


@given(st.text())
def test_every_name_is_safe(text: str) -> None:
    name = file_name(text)
    assert re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name)
    assert ".." not in name
    assert not name.endswith(".")
    assert len(name) <= 80
    assert name.partition(".")[0] not in {"con", "nul", "aux", "prn", "com1", "index"}


@given(st.text(max_size=12), st.text(max_size=12))
def test_no_two_texts_share_a_name(one: str, other: str) -> None:
    assert (file_name(one) == file_name(other)) == (one == other)


def test_a_text_that_looks_like_a_made_name_gets_another_one() -> None:
    made = file_name("CON")
    assert file_name(made) != made


def test_usual_references_stay_as_they_are() -> None:
    for text in ("tiny-r3d", "x3d.m-k400", "motion-tiny-r3d-ifgsm-nodefense-f7c032aa52"):
        assert file_name(text) == text
