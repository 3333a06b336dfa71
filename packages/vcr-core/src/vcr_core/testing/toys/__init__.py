"""Small components with known answers, and broken ones that the checks must catch.

``linear``
    a linear classifier whose optimal attack is known in closed form
``cnn``
    a 3-D CNN with closed-form weights that classifies the ``shapes`` dataset
``shapes``
    a generated dataset: moving shapes, 8 classes, 24 videos, no files
``attacks``, ``defenses``, ``metrics``
    one short component of every sort that the engine tells apart
``broken``
    components that break one rule each
``specs``
    the spec of every sound toy, ready for ``parametrize_contract``
``plugin``, ``installed``
    the toys as a plugin, and a block during which it is installed
"""
