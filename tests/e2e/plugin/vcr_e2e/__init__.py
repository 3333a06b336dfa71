"""Components that misbehave when an environment variable says so; hence not part of a hash."""
