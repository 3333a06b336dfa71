"""Tampering: one segment of the whole video is changed before anything is sampled.

Agarwal et al., "MVTamperBench: evaluating robustness of vision-language models", arXiv 2412.19794,
section 3.3, defines the first five operators; the paper announces noise, local masks and shuffling.
"""
