"""How reports are drawn from private bits: a distance, a direction, and a lattice cell.

``cells`` draws reports around points, with ``distances`` for the distance and ``circle`` or
``random.normal`` for the direction. Floats decide what is certain. ``reals`` computes the rest from
the same words with as many digits as it takes, with ``exact_normals`` for normals and ``decimals``
for arithmetic. ``constants`` holds the figures of BPM, and ``two_stage`` is the paper's own
sampler.
"""
