"""Studies of accuracy: each writes a table and a picture of its own page in docs/."""
