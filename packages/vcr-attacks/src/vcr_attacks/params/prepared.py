"""Parameters of the attacks with an offline step."""
