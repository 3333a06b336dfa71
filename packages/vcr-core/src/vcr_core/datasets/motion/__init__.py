"""SynthMotion: a procedurally generated, labelled video-classification data set.

The label is the *motion* of one textured object, so a single frame carries almost no evidence.
Everything here is plain numpy and one clip is a pure function of ``(base_seed, split, index)``.

``labels``
    label names and the exact label maps of time reversal and mirroring
``generator``
    ``generate_clip`` and the split table
``cache``
    memory-mapped files of whole splits
``export``
    real video files in a Kinetics-style folder
"""
