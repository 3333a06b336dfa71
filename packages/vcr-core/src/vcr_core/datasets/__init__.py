"""Labelled video collections: generated motion, folders, lists, Kinetics-400, UCF101, SSv2."""
