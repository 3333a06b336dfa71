"""Components that break one rule each; the checks and the engine have to catch every one."""
