"""The numbers of Tables 2 and 3 of VCR-Bench (arXiv 2610.08936), and what they imply.

Rates are fractions here and per cent in the files, as they were printed.
"""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

CITATION = "VCR-Bench, arXiv 2610.08936"
DATASET = "kinetics400"
EPS = 8 / 255
VIDEOS = 100

RATES = ("clean_acc", "asr", "robust_acc")
"""Columns of Table 2 that are rates."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of Table 2: its name in the file, its heading, and whether it is a rate."""

    name: str
    title: str
    is_rate: bool = False


COLUMNS = (
    Column("clean_acc", "Clean %", True),
    Column("asr", "ASR %", True),
    Column("robust_acc", "Robust %", True),
    Column("mse", "MSE"),
    Column("psnr_db", "PSNR, dB"),
    Column("ssim", "SSIM"),
    Column("lpips", "LPIPS"),
    Column("vmaf", "VMAF"),
    Column("iters", "Iterations"),
    Column("time_per_video_s", "Time, s"),
)


@dataclass(frozen=True, slots=True)
class Names:
    """Our references of the paper's rows and columns."""

    models: Mapping[str, tuple[str, ...]]
    attacks: Mapping[str, str]
    defenses: Mapping[str, str]
    metrics: Mapping[str, tuple[str, ...]]

    def model(self, ref: str) -> str | None:
        """Return the paper's name of a model with its weights, if it has one."""
        return next((row for row, refs in self.models.items() if ref in refs), None)

    def attack(self, ref: str) -> str | None:
        """Return the paper's name of an attack, whatever its preset."""
        return _inverse(self.attacks).get(ref.partition(".")[0])

    def defense(self, ref: str) -> str | None:
        """Return the paper's name of a defense, whatever its preset."""
        return _inverse(self.defenses).get(ref.partition(".")[0])


@cache
def table2() -> dict[str, dict[str, float]]:
    """Return Table 2: a mapping of column to number by model, rates as fractions."""
    found = {}
    for row in _rows("table2.csv"):
        model = row.pop("model")
        values = {name.removesuffix("_pct"): float(text) for name, text in row.items()}
        found[model] = {k: v / 100 if k in RATES else v for k, v in values.items()}
    return found


@cache
def table3() -> dict[tuple[str, str], tuple[float, float]]:
    """Return Table 3: robust accuracy and attack success by defense and attack, as fractions."""
    return {
        (row["defense"], row["attack"]): (
            float(row["defended_robust_acc_pct"]) / 100,
            float(row["asr_pct"]) / 100,
        )
        for row in _rows("table3.csv")
    }


@cache
def names() -> Names:
    """Return which of our components the rows and columns are."""
    data: dict[str, Any] = tomllib.loads(_text("names.toml"))
    models = {}
    for row, entry in data["models"].items():
        full = f"{entry['name']}.{entry['variant']}"
        models[row] = (full, entry["name"]) if entry.get("default") else (full,)
    return Names(
        models,
        data["attacks"],
        data["defenses"],
        {column: tuple(refs) for column, refs in data["metrics"].items()},
    )


def attacks3() -> list[str]:
    """Return the columns of Table 3 in their order."""
    return list(dict.fromkeys(attack for _, attack in table3()))


def defenses3() -> list[str]:
    """Return the rows of Table 3 in their order."""
    return list(dict.fromkeys(defense for defense, _ in table3()))


def identity_gap(clean: float, asr: float, robust: float) -> float:
    """Return by how much robust accuracy differs from ``clean · (1 - asr)``.

    It does not where success means that the label changed, over the videos that were right.
    """
    return robust - clean * (1 - asr)


def implied_clean(robust: float, asr: float) -> float | None:
    """Return the clean accuracy that robust accuracy and attack success imply, if they do."""
    return robust / (1 - asr) if asr < 1 else None


def _inverse(mapping: Mapping[str, str]) -> dict[str, str]:
    return {ref: row for row, ref in mapping.items()}


def _rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(_text(name))))


def _text(name: str) -> str:
    return files("vcr_core").joinpath("data", "paper", name).read_text(encoding="utf-8")
