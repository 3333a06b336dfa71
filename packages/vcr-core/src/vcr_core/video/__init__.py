"""Reading, sampling and writing videos.

``sampling``
    which frames a model looks at, in integers
``reader``
    ``probe`` and ``read``: files, folders of frames, arrays and in-memory bytes
``info``
    ``VideoInfo``, ``Clip`` and ``VideoReadError``
``counts``
    a file-backed memory of how many frames a file decodes to
``source``
    one file as a dataset's ``VideoSource``
``isolation``
    ``read`` in a process of its own, with a time limit
``writer``, ``preview``
    exact storage with a sidecar, and copies for looking at
"""
