"""Adversarial videos of a run as files: exact ones to check, and previews to look at.

An exact file holds the frames that the model was given, bit for bit, and is written only if the
model says of them what the record says. A preview is made for the eye and never judged.
"""
