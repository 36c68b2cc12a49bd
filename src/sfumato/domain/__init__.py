"""The public axes and the lattice of cells on them; nothing here knows of privacy."""
