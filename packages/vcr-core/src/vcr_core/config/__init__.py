"""What is asked: layered TOML, validation, provenance, identity, sweeps."""
