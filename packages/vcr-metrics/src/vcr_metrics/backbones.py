"""Reading the networks of learned metrics from local files that are known by their hash."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from vcr_core.errors import ComponentUnavailable
from vcr_core.weights.places import file_name, find, places, verify
from vcr_core.weights.reading import read_checkpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor
    from vcr_core.specs import WeightSpec


def backbone_file(
    ref: str, weights: WeightSpec, given: str = "", folders: Sequence[Path] = ()
) -> Path:
    """Return where a network is; nothing is downloaded.

    Args:
        ref: metric and variant that ``vcr weights fetch`` knows the file by.
        weights: what is looked for.
        given: a path; ``""`` for the usual places.
        folders: looked at before them.

    Raises:
        ComponentUnavailable: if it is not there.
    """
    name, metric = file_name(weights), ref.partition(".")[0]
    if given:
        file = Path(given).expanduser()
        if not file.is_file():
            raise ComponentUnavailable(
                f"metric {metric!r} needs backbone weights: there is no file {file}"
            )
        return file
    found = find(weights, folders)
    if found is None:
        looked = ", ".join(str(place.parent) for place in places(weights, folders))
        raise ComponentUnavailable(
            f"metric {metric!r} needs backbone weights, and {name} is not on this machine "
            f"(looked into {looked})\n"
            f"  vcr weights fetch {ref}    gets it, {weights.bytes / 1e6:,.0f} MB, licence: "
            f"{weights.license}\n"
            f"  or name your copy of torchvision's {name} with the parameter backbone"
        )
    return found


def network_state(metric: str, weights: WeightSpec, file: Path) -> dict[str, Tensor]:
    """Return the tensors of a network's file, on the CPU, after comparing its hash.

    Any other weights, random ones too, would give plausible numbers that mean nothing.

    Raises:
        ComponentUnavailable: if it is another file.
    """
    try:
        verify(weights, file)
    except ComponentUnavailable as other:
        raise ComponentUnavailable(
            f"metric {metric!r}: {other}; with other weights the value means nothing"
        ) from other
    return dict(read_checkpoint(file))


def layer(metric: str, file: Path, state: dict[str, Tensor], key: str) -> Tensor:
    """Return one tensor of a backbone.

    Raises:
        ComponentUnavailable: if the file lacks it.
    """
    if key not in state:
        raise ComponentUnavailable(f"metric {metric!r}: {file} lacks {key}")
    return state[key]


def release(distribution: str) -> str:
    """Return ``name version`` of an installed distribution, for records."""
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return distribution
