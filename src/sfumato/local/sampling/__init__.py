"""How reports are drawn: radius, direction and lattice cell, from private bits."""
