"""Weight files: where they are, where they come from, whether they are whole, what they hold."""
