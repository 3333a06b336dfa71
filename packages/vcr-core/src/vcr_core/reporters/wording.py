"""Titles and formulas of the numbers that reports show."""

from __future__ import annotations

DEFINITION_TITLES: dict[str, str] = {
    "clean_accuracy": "Clean accuracy",
    "defended_clean_accuracy": "Clean accuracy, defended",
    "robust_accuracy": "Robust accuracy",
    "defended_robust_accuracy": "Robust accuracy, defended",
    "asr_untargeted": "Attack success, label changed",
    "defended_asr_untargeted": "Attack success, label changed, defended",
    "asr_targeted": "Attack success, target reached",
    "defended_asr_targeted": "Attack success, target reached, defended",
    "asr_paper": "Attack success as in the paper",
    "robust_accuracy_paper": "Robust accuracy as in the paper",
    "benefit": "Benefit of the defense (points)",
    "harm": "Cost of the defense on clean videos (points)",
    "recovered_fraction": "Share of the loss that the defense recovers",
    "clean_top5_accuracy": "Clean top-5 accuracy",
    "robust_top5_accuracy": "Robust top-5 accuracy",
    "clean_reject_rate": "Clean videos rejected",
    "attacked_reject_rate": "Attacked videos rejected",
    "detected_or_correct_rate": "Attacked videos rejected or classified correctly",
    "clean_abstention_rate": "Clean videos without a prediction",
    "attacked_abstention_rate": "Attacked videos without a prediction",
    "certified_accuracy": "Certified accuracy",
    "certified_abstention_rate": "Clean videos without a certificate",
}

SYMBOLS = (
    "f: the model; d: the defense; x: the clean video; a: the attacked video, rounded as it would "
    "be stored; y: the true label; h: the defended model where there is a defense, else f. "
    "Eligible videos are those that the attacked system classifies correctly before the attack."
)

METRIC_TITLES: dict[str, str] = {
    "mse": "MSE (levels²)",
    "psnr": "PSNR (dB)",
    "ssim": "SSIM",
    "ssim-uniform7": "SSIM, uniform 7x7",
    "ms-ssim": "MS-SSIM",
    "lpips": "LPIPS",
    "lpips-vcrbench": "LPIPS of VCR-Bench",
    "st-lpips": "ST-LPIPS",
    "dists": "DISTS",
    "vmaf": "VMAF",
    "flicker": "Flicker (levels)",
    "roughness": "Roughness",
    "warp_error_delta": "Warping error added (levels²)",
    "tof": "tOF (px)",
    "tlp": "tLP",
    "psnr_of_mean_mse": "PSNR of the mean MSE (dB)",
    "psnr_capped_mean": "PSNR, identical clips as 100 dB",
}

FRAME_WORDS: dict[str, str] = {
    "_frame_max": "largest frame",
    "_frame_min": "smallest frame",
    "_frame_p95": "95th percentile of frames",
}
"""Ends of the names of what stands beside a mean over frames."""

SIZE_TITLES: dict[str, str] = {
    "linf": "L∞, fraction of the range",
    "l2": "L2",
    "l1": "Mean absolute difference, fraction of the range",
    "l0_fraction": "Share of pixels changed",
    "frames_touched": "Frames changed",
    "l21": "Sum of the frames' L2",
    "violation": "Violation before projection",
    "confidence_drop": "Drop of the true class's probability",
    "margin_clean": "Margin before the attack (log-probability)",
    "margin_attacked": "Margin after the attack (log-probability)",
}

COST_TITLES: dict[str, str] = {
    "forwards": "Forward passes",
    "backwards": "Backward passes",
    "surrogate_forwards": "Forward passes of surrogates",
    "iterations": "Iterations",
    "budget_exhausted": "Budget exhausted",
    "t_decode_s": "Decoding (s)",
    "t_clean_s": "Clean prediction (s)",
    "t_certify_s": "Certificate (s)",
    "t_attack_s": "Attack (s)",
    "t_eval_s": "Final evaluation (s)",
    "t_metrics_s": "Metrics (s)",
    "mem_peak_bytes": "Peak memory (bytes)",
}

STATUS_TEXT: dict[str, str] = {
    "ok": "attacked and judged",
    "ineligible": "wrong before the attack, so not attacked; in the rates",
    "error": "failed; not in the rates",
    "skipped": "not tried",
    "planned": "all videos of the run",
    "missing": "not done yet",
}


def definition_title(name: str) -> str:
    """Return the title of a definition; its name in words where it has none.

    Example:
        >>> definition_title("defended_robust_accuracy_any")
        'Robust accuracy, defended, any draw'
    """
    for suffix, words in (("_any", ", any draw"), ("_majority", ", majority of draws")):
        if name.endswith(suffix):
            return definition_title(name.removesuffix(suffix)) + words
    return DEFINITION_TITLES.get(name) or name.replace("_", " ").capitalize()


def metric_title(name: str) -> str:
    """Return the heading of a metric's column.

    Example:
        >>> metric_title("lpips_frame_max")
        'LPIPS, largest frame'
    """
    for suffix, words in FRAME_WORDS.items():
        if name.endswith(suffix):
            return f"{metric_title(name.removesuffix(suffix))}, {words}"
    return METRIC_TITLES.get(name, name)
