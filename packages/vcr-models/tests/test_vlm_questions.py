"""The questions of ``vlm-detector`` and the strict reading of answers to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import ValidationError, convert
from vcr_models.detectors.names import EVERY, ORIGINAL
from vcr_models.detectors.vlm_params import VlmDetectorParams
from vcr_models.detectors.vlm_questions import (
    DESCRIPTIONS,
    parse_answer,
    tampered_question,
    type_question,
)

YES_FIRST = tampered_question(8)
NO_FIRST = tampered_question(8, no_first=True)
TYPES = type_question(8, ["original", "drop", "mask", "rotate", "substitute", "repeat"])

# Text; what it names with yes first, with no first, and in the question for the type.
ANSWERS = [
    ("A", "yes", "no", "original"),
    ("(A)", "yes", "no", "original"),
    ("A.", "yes", "no", "original"),
    ("(A", "yes", "no", "original"),
    ("b", "no", "yes", "drop"),
    ("(b)", "no", "yes", "drop"),
    ("**B**", "no", "yes", "drop"),
    ("B\nB\nB", "no", "yes", "drop"),
    ("Option B", "no", "yes", "drop"),
    ("Best option: (B", "no", "yes", "drop"),
    ("The answer is B", "no", "yes", "drop"),
    ("The answer is A because", "yes", "no", "original"),
    ("Answer:A", "yes", "no", "original"),
    ("<b>B</b>", "no", "yes", "drop"),
    ("C", None, None, "mask"),
    ("G", None, None, None),
    # Words count where they are options, at the beginning or introduced.
    ("Yes", "yes", "yes", None),
    ("no.", "no", "no", None),
    ("The answer is yes", "yes", "yes", None),
    ("No, the video has not been edited", "no", "no", None),
    ("There is no evidence of that", None, None, None),
    # A word and a letter must agree.
    ("Yes, A", "yes", None, "original"),
    ("Yes (B)", None, "yes", "drop"),
    ("B) No", "no", None, "drop"),
    # Several options are none.
    ("A or B", None, None, None),
    ("A and B", None, None, None),
    ("(A) (B)", None, None, None),
    ("(A) (G)", None, None, None),
    ("A, not B", None, None, None),
    ("yes or no", None, None, None),
    ("No. Yes.", None, None, None),
    # What is denied is not named.
    ("It is not A", None, None, None),
    ("The answer isn't B", None, None, None),
    ("Neither A nor B", None, None, None),
    ("I can't tell. A", None, None, None),
    # Articles and pronouns are no letters, and letters inside of words are none.
    ("A dog runs", None, None, None),
    ("I think…", None, None, None),
    ("A-B", None, None, None),
    ("AB", None, None, None),
    ("Absolutely", None, None, None),
    ("yesyes", None, None, None),
    ("Nobody", None, None, None),
    ("It's a cut", None, None, None),
    # Nothing, and text that is made to confuse.
    ("", None, None, None),
    (" \n\t", None, None, None),
    ("\uff21", None, None, None),
    ("<script>alert(1)</script>", None, None, None),
    ("\u202eB\u202c)A(", None, None, None),
    ("(" * 10_000, None, None, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "yes_first", "no_first", "kind"), ANSWERS, ids=[repr(row[0])[:30] for row in ANSWERS]
)
def test_an_answer_names_one_option_or_nothing(
    text: str, yes_first: str | None, no_first: str | None, kind: str | None
) -> None:
    assert parse_answer(text, YES_FIRST) == yes_first
    assert parse_answer(text, NO_FIRST) == no_first
    assert parse_answer(text, TYPES) == kind


@given(st.text(max_size=60))
def test_no_text_breaks_the_parser(text: str) -> None:
    assert parse_answer(text, YES_FIRST) in {"yes", "no", None}
    assert parse_answer(text, TYPES) in {*TYPES.options, None}


def test_the_first_question_offers_both_words_in_both_orders() -> None:
    assert "(A) Yes\n(B) No\n" in YES_FIRST.text
    assert "(A) No\n(B) Yes\n" in NO_FIRST.text
    assert YES_FIRST.options == ("yes", "no")
    assert NO_FIRST.options == ("no", "yes")
    assert "8 frames" in YES_FIRST.text


def test_the_second_question_has_an_option_a_class() -> None:
    assert TYPES.letters == "ABCDEF"
    assert TYPES.options[0] == ORIGINAL
    for letter, name in zip(TYPES.letters, TYPES.options, strict=True):
        assert f"({letter}) {DESCRIPTIONS[name]}\n" in TYPES.text
    assert len(set(DESCRIPTIONS.values())) == len(DESCRIPTIONS)


def test_every_effect_that_can_be_asked_for_has_a_description() -> None:
    names = [name for name in DESCRIPTIONS if name != ORIGINAL]
    assert names == list(EVERY)
    assert convert({"checkpoint": "x", "effects": names}, VlmDetectorParams).effects == names


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "checkpoint"),
        ({"checkpoint": ""}, "checkpoint"),
        ({"checkpoint": "x", "effects": []}, "effects"),
        ({"checkpoint": "x", "effects": ["drop", "drop"]}, "more than once"),
        ({"checkpoint": "x", "effects": ["dropping"]}, "effects"),
        ({"checkpoint": "x", "frames": 0}, "frames"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        convert(params, VlmDetectorParams)
