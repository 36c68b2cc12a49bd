"""Trees of boxes with noisy counts: their geometry, what all counts say together, and counts of ranges."""
