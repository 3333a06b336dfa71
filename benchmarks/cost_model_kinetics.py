"""The example of docs/guides/big-runs.md: Kinetics-400, 30 models, 14 attacks, 10 defenses.

Nothing is run. Passes are counted from the plan; seconds are those that a person measures with
``vcr info model/NAME --measure`` where the sweep will run.
"""

from __future__ import annotations

from dataclasses import replace

from cost_model_formulas import (
    NONE,
    Attack,
    Cost,
    Defense,
    Plan,
    clip_bytes,
    of_kind,
)

MODELS = 30
VALIDATION = 19_906
"""Rows of the official validation list of Kinetics-400."""

GRADIENT_ATTACKS = (
    "ifgsm",
    "mifgsm",
    "amifgsm",
    "korhonen",
    "stadv",
    "zhang-ssim",
    "zhang-lpips",
    "zhang-dists",
)
ATTACKS = (
    *(Attack(name, gradients=20, queries=1) for name in GRADIENT_ATTACKS),
    Attack("ssah", gradients=20, queries=22),
    Attack("uap", gradients=0, queries=1),
    Attack("bmtc", gradients=0, queries=0),  # its surrogate takes 10 forwards and 20 backwards
    Attack("square", gradients=0, queries=201),
    Attack("gradest", gradients=0, queries=601),
    Attack("stylefool", gradients=0, queries=9801),
)
DRAWS = 5
DEFENSES = (
    Defense("jpeg"),
    Defense("gaussian-blur"),
    Defense("temporal-median"),
    Defense("flip"),
    Defense("rotate", DRAWS),
    Defense("crop-resize", DRAWS),
    Defense("temporal-shuffle", DRAWS),
    Defense("videopure", votes=7, gradient_votes=7, network=12),
    Defense("freqpure", DRAWS, network=10),
    Defense("randomized-smoothing", DRAWS, votes=100, gradient_votes=8),
)
PLAIN = DEFENSES[:7]
CAP = 1000
CPU_SECONDS = {
    "X3D-M": (2.1, 8.8), "TSN R50": (1.9, 5.7), "I3D R50": (2.4, 8.7), "SlowFast R50": (3.8, 13.1),
    "MViTv2-S": (5.9, 18.0), "Video Swin-T": (11.0, 25.0), "VideoMAE-B": (13.0, 31.0),
    "ViViT-B": (25.0, 73.0),
}  # fmt: skip
"""Forward, and forward and backward, of one view on one CPU thread."""
RECORD = 3400
FRAMES, HEIGHT, WIDTH = 16, 256, 340
DAY = 86_400


def plan(videos: int = 1, **more: object) -> Plan:
    """Return one model's part; every video counts as eligible, so attacks are an upper bound."""
    asked = {"attacks": ATTACKS, "defenses": DEFENSES, **more}
    defenses = (NONE, *asked["defenses"])  # type: ignore[misc]
    eligible = {defense.name: videos for defense in defenses}
    return Plan("model", videos, eligible, **asked)  # type: ignore[arg-type]


def capped(attacks: tuple[Attack, ...]) -> tuple[Attack, ...]:
    """Return attacks under ``threat.max_forwards = 1000``."""
    return tuple(replace(a, queries=min(a.queries, CAP - a.gradients)) for a in attacks)


def passes(cost: Cost) -> tuple[int, int]:
    """Return forward passes without a gradient, and gradients."""
    return of_kind(cost, "forward"), of_kind(cost, "gradient")


def line(name: str, cost: Cost) -> None:
    forwards, gradients = passes(cost)
    network = of_kind(cost, "network")
    print(f"  {name:<44} {forwards:>14,} {gradients:>12,} {network:>12,}")


def by_defense() -> None:
    """Print what each defense adds to one video of one model."""
    print("one video, one model, 14 attacks:           forwards without  gradients      network")
    bare = plan(defenses=())
    line("bare", bare.total())
    for defense in DEFENSES:
        one = plan(defenses=(defense,))
        unaware, aware = replace(one, aware=False), replace(one, unaware=False)
        line(f"+ {defense.name}, unaware", unaware.total() - bare.total())
        line(f"+ {defense.name}, adaptive", aware.total() - bare.total())


def variants() -> dict[str, Plan]:
    """Return the plans that the page compares."""
    cap = plan(attacks=capped(ATTACKS))
    plain = replace(cap, defenses=PLAIN)
    unaware = replace(plain, aware=False)
    return {
        "everything": plan(),
        "max_forwards = 1000": cap,
        "seven plain defenses": plain,
        "... without reuse": replace(plain, reuse=False),
        "... unaware only": unaware,
        "... unaware only, without reuse": replace(unaware, reuse=False),
    }


def hours() -> None:
    """Print CPU days of a few models for the plan with seven plain defenses."""
    found = variants()["seven plain defenses"].total()
    forwards, gradients = passes(found)
    print(f"\nCPU-thread days for 1,000 videos, one view: {forwards:,} forwards and "
          f"{gradients:,} gradients a video")  # fmt: skip
    for name, (forward, both) in CPU_SECONDS.items():
        spent = 1000 * (forwards * forward + gradients * both)
        print(f"  {name:<14} {forward:>5} {both:>5} s   {spent / DAY:>8,.0f} days")
    print(f"  any device, hours for 1,000 videos: {forwards / 3.6:,.0f} x forward_s + "
          f"{gradients / 3.6:,.0f} x forward_backward_s")  # fmt: skip


def disk() -> None:
    """Print records, reuse cache and kept clips."""
    one = clip_bytes(FRAMES, HEIGHT, WIDTH)
    each = of_kind(plan().total(), "run")
    print(f"\n{each} runs a model, {each * MODELS:,} in all; {one / 1e6:.2f} MB a kept video")
    for videos in (VALIDATION, 1000, 100):
        lines, kept = each * MODELS * videos, videos * one / 1e9
        text = lines * RECORD / 1e9
        print(f"  {videos:>6,} videos: {lines / 1e6:,.1f} M records, {text:,.1f} GB; "
              f"clips of one attack {kept:,.1f} GB, of all attacks on a model "
              f"{len(ATTACKS) * kept:,.0f} GB")  # fmt: skip
    print(f"  output.keep_clips = 4: up to {each * MODELS * 4 * 2 * one / 1e9:,.0f} GB")


def show() -> None:
    """Print the whole example."""
    by_defense()
    print("\none model, all defenses, bare, unaware and adaptive")
    for name, asked in variants().items():
        line(f"{name}, one video", asked.total())
    print(f"\n{MODELS} models")
    for videos in (VALIDATION, 1000, 100):
        for name, asked in variants().items():
            forwards, gradients = passes(asked.total())
            scale = MODELS * videos
            print(f"  {videos:>6,} videos, {name:<32} {forwards * scale:>10.3g} forwards "
                  f"{gradients * scale:>10.3g} gradients")  # fmt: skip
    hours()
    disk()
