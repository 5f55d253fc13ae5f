"""The algorithms, one readable file each: its configuration and its plan."""
