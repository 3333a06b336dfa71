"""The two questions of ``vlm-detector`` and what counts as an answer to them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING, Final

from vcr_models.detectors.names import ORIGINAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DESCRIPTIONS: Final[Mapping[str, str]] = {
    ORIGINAL: "It is untouched",
    "drop": "A stretch of frames was cut out, so that the scene jumps ahead",
    "mask": "A stretch of frames is blacked out",
    "rotate": "A stretch of frames is turned upside down",
    "substitute": "A stretch of frames was replaced by frames of another video",
    "repeat": "A stretch of frames is shown twice in a row",
    "noise": "A stretch of frames has noise added to it",
    "local-mask": "In a stretch of frames a part of the picture is covered",
    "shuffle": "A stretch of frames is in random order",
    "freeze": "In a stretch of the video the picture stands still",
    "reverse": "A stretch of the video runs backwards",
    "speed": "A stretch of the video runs faster or slower than the rest",
    "blur": "A stretch of frames is blurred",
    "jpeg": "A stretch of frames shows strong compression artefacts",
}
"""What each option of the second question says, by class."""

_OPENING: Final = (
    "You see {count} frames from one video, in the order of time and equally far apart. Somebody "
    "may have edited a short part of the video before."
)
_CLOSING: Final = "Reply with the letter of one option and nothing else."


@dataclass(frozen=True, slots=True)
class Question:
    """A multiple-choice question.

    Attributes:
        text: what the model reads, options included.
        options: what each letter stands for, in the order in which they are offered.
    """

    text: str
    options: tuple[str, ...]

    @property
    def letters(self) -> str:
        """The letters of the options, in order."""
        return ascii_uppercase[: len(self.options)]


def tampered_question(frames: int, *, no_first: bool = False) -> Question:
    """Return the question whether the video was tampered with; options ``yes`` and ``no``."""
    options = ("no", "yes") if no_first else ("yes", "no")
    asked = "Has this video been edited or tampered with?"
    return _question(frames, asked, options, [option.capitalize() for option in options])


def type_question(frames: int, classes: Sequence[str]) -> Question:
    """Return the question what was done to the video; one option a class, in this order."""
    asked = "Which statement about this video is true?"
    return _question(frames, asked, classes, [DESCRIPTIONS[name] for name in classes])


def _question(frames: int, asked: str, options: Sequence[str], shown: Sequence[str]) -> Question:
    lines = [f"({letter}) {text}" for letter, text in zip(ascii_uppercase, shown, strict=False)]
    opening = _OPENING.format(count=frames)
    return Question("\n".join([opening, asked, *lines, _CLOSING]), tuple(options))


def parse_answer(text: str, question: Question) -> str | None:
    """Return the one option that an answer names, or ``None`` if it names none or several.

    An option is named by its letter: alone, in brackets, before a punctuation mark or after words
    such as *answer is*. Where options are ``yes`` and ``no``, the word names it at the beginning or
    after such words. What follows a denial names nothing: *not A* is not *A*.

    Example:
        >>> ask = tampered_question(8)
        >>> [parse_answer(text, ask) for text in ("(B)", "Yes.", "The answer is A", "A or B", "")]
        ['no', 'yes', 'yes', None, None]
    """
    found = _letters(text)
    words = "yes" in question.options
    if words:
        found += [(match.start(1), match.group(1).lower()) for match in _WORD.finditer(text)]
    if not found:
        return None
    denied = _DENIAL.search(text)
    if denied and denied.start() < min(found)[0]:
        return None
    named = {_option(name, question) for _, name in found}
    if words and named <= {"yes", "no"}:
        # A word inside of the sentence names nothing, but it may contradict: "Yes or no".
        named |= {word.lower() for word in _YES_NO.findall(text)}
    return named.pop() if len(named) == 1 else None


_YES_NO: Final = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
_INTRODUCTION: Final = r"\b(?:answer(?:\s+is|\s*:)|option|choice)[\s:*\"'(]*"
_WORD: Final = re.compile(rf"(?:^[^\w]*|{_INTRODUCTION})(yes|no)\b", re.IGNORECASE)
_DENIAL: Final = re.compile(
    r"\b(?:not|neither|nor|none|never|cannot)\b|n['\u2019]t\b", re.IGNORECASE
)
_LETTERS: Final = (
    re.compile(r"[(\[]\s*([A-Za-z])\s*[)\]]"),
    re.compile(rf"{_INTRODUCTION}([A-Z])\b"),
    # Before a word in small letters a single letter is an article or a pronoun: "A dog", "I think".
    re.compile(r"(?<![\w'\u2019(\[-])([A-Z])(?![\w'\u2019-])(?!\s+(?!or\b|and\b)[a-z])"),
    re.compile(r"^[\s\"'*(\[]*([A-Za-z])[\s\"'*)\].:,]*$"),
)


def _letters(text: str) -> list[tuple[int, str]]:
    """Return the letters that a text names, with their places in it."""
    return [
        (match.start(1), match.group(1).upper())
        for rule in _LETTERS
        for match in rule.finditer(text)
    ]


def _option(name: str, question: Question) -> str | None:
    """Return what a letter or a word stands for; ``None`` for a letter that was not offered."""
    if name in question.options:
        return name
    place = question.letters.find(name)
    return question.options[place] if place >= 0 else None
