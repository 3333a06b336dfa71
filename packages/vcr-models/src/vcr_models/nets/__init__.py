"""Video networks written here, each with the parameter names of its official release."""
