"""Small trained classifiers of SynthMotion clips, bundled with their weights.

All of them look at 32x32 pixels, pooled from 64x64, and at forward differences in time; every step
from the source pixels on is differentiable. ``build`` holds the classifier; ``front``, ``stem``,
``tokens`` and ``channelwise`` are shared, the other modules are one network each.
"""
