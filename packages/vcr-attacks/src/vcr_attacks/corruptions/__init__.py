"""Common corruptions of frames, in five severities.

Definitions and strengths are those of Hendrycks & Dietterich, "Benchmarking neural network
robustness to common corruptions and perturbations", ICLR 2019 (ImageNet-C), where nothing else is
said. Sizes in pixels are meant for frames whose shorter side is 224 and are scaled with it. Noise
is drawn for every frame; whatever else is random is drawn once a video and stays.
"""
