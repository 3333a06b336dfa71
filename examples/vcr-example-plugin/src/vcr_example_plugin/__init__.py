"""Components for `vcr`; import nothing heavy here, every `vcr` command runs this file."""
