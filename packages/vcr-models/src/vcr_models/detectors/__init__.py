"""Detectors of tampering: ordinary models over the data set `tamper`."""
