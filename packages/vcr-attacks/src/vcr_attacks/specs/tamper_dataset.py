"""The dataset of tampered videos."""

from __future__ import annotations

from vcr_core import DatasetSpec

SPECS: tuple[DatasetSpec, ...] = (
    DatasetSpec(
        name="tamper",
        summary="Videos of another dataset, original and tampered with; the class is the effect",
        target="vcr_attacks.tampering.dataset:TamperDataset",
        params="vcr_attacks.params.tamper_dataset:TamperDatasetParams",
        reference="https://arxiv.org/abs/2412.19794",
        tags=frozenset({"tampering"}),
        example="vcr run --dataset tamper --model tamper-baseline --limit 60",
    ),
)
