"""Numbers, text, files and processes: what every room needs, and what knows nothing of privacy."""
