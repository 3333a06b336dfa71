"""Parameters of the attacks with a perceptual constraint."""
