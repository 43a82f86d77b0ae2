"""Functions that tests give to other processes."""
