"""What each health flag means, in one sentence; shown as footnotes in every report."""

from __future__ import annotations

HEALTH_TEXT: dict[str, str] = {
    "attack-no-effect": (
        "The attack gave the clean clip back for some videos: it did not work there, which is no "
        "evidence of robustness."
    ),
    "zero-gradient": (
        "The gradient at the input was exactly zero for some videos, so a gradient attack had "
        "nothing to follow there and its failure is no evidence of robustness."
    ),
    "probabilities-not-logits": (
        "The model appears to return probabilities instead of logits, which flattens the loss "
        "and weakens gradient attacks."
    ),
    "undeclared-randomness": (
        "The same input gave different outputs although no component declares randomness, so the "
        "numbers of this run may not repeat."
    ),
    "gradient-not-reaching-input": (
        "No gradient arrived at the pixels, for instance because a step of the preprocessing or "
        "of the defense cuts it."
    ),
    "blackbox-beats-whitebox": (
        "An attack without gradients succeeded more often than one with gradients, a sign that "
        "gradients are masked and the white-box number is too optimistic."
    ),
    "unaware-beats-adaptive": (
        "The same attack succeeded clearly more often when it did not know the defense, a sign "
        "that the defense masks its gradients, so the worse of both numbers is the one to quote."
    ),
    "more-steps-do-not-help": (
        "More attack steps did not lower the accuracy, a sign that the attack is stuck rather "
        "than that the model is robust."
    ),
    "larger-eps-does-not-help": (
        "A larger perturbation budget did not lower the accuracy, a sign that the attack does "
        "not use the budget it has."
    ),
    "unbounded-fails": (
        "Even without a bound on the perturbation the attack does not bring the accuracy to zero, "
        "so the robust accuracy is probably overstated."
    ),
    "constraint-violated": (
        "The attack returned clips outside its declared constraint; they were projected back "
        "before they were judged."
    ),
    "lost-by-rounding": (
        "Rounding to 8-bit pixels undid the perturbation or its success for some videos; what is "
        "judged is the rounded clip."
    ),
    "lost-by-reencoding": (
        "Storing the adversarial clip as a video and reading it back changed the outcome for some "
        "videos."
    ),
    "budget-exhausted-often": (
        "Many videos ran out of queries or gradients before the attack ended on its own, so the "
        "result depends on the budget."
    ),
    "errors-over-budget": (
        "More videos failed than the run allows; the rates leave them out and cannot be "
        "taken as the result of the full subset."
    ),
    "adaptive-not-applicable": (
        "The attacker was meant to know the defense but no usable gradient passes through it, so "
        "the result is not that of an adaptive attack."
    ),
    "leak": (
        "The attack was prepared on some of the videos that it is judged on, so its success is "
        "overstated."
    ),
    "smaller-chunk": (
        "Memory ran out and the videos were done again in smaller pieces, which may change the "
        "last bits of their numbers."
    ),
}
"""Flag id to explanation, for every flag that the core can raise."""

UNKNOWN_FLAG = "A component raised this flag; its documentation says what it means."


def explain_flag(flag: str) -> str:
    """Return the sentence that explains ``flag``; a generic one for flags of other plugins.

    Example:
        >>> explain_flag("attack-no-effect").startswith("The attack changed no prediction")
        True
    """
    return HEALTH_TEXT.get(flag, UNKNOWN_FLAG)
