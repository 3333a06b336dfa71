"""The code of the checks, one module a kind; ``vcr_core.testing.catalog`` lists them."""
