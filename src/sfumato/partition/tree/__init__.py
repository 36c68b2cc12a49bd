"""Trees of boxes with noisy counts: growth, geometry, inference, and counts of ranges."""
