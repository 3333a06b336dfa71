"""Published classifiers: what they are, how they look at frames, where their weights are."""
