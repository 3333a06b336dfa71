"""Image classifiers as video classifiers: frames are looked at one by one and averaged."""
