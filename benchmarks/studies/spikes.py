"""Range counts where rows lie in few small places, at a small epsilon.

    python -m benchmarks.studies.spikes [--draws 40] [--epsilon 0.1] [--rows 10000,100000]

Prints the table of docs/evidence/gains/spikes.md: mean relative errors of 400 random boxes in per
cent, as of ``partitions``, and the error of "auto" over that of the best other partitioner. Other
places (seed 11) were looked at while the partitioner was changed.
"""

from __future__ import annotations

import argparse

from benchmarks.studies import partitions, shapes

NAMES = ("uniform", "adaptive grid", "PrivTree", "auto")
ORDINARY = ("clusters", "roads", "beta", "floor")


def main() -> None:
    """Measure every table, and print a line for each."""
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--draws", type=int, default=40)
    asked.add_argument("--epsilon", type=float, default=0.1)
    asked.add_argument("--rows", default="10000,100000")
    options = asked.parse_args()
    print(f"| shape, rows | {' | '.join(NAMES)} | auto / best other |")
    print("|---" * (len(NAMES) + 2) + "|")
    for rows in map(int, options.rows.split(",")):
        tables = {
            f"{places} places, {stray:.0%} strays": shapes.spikes(places, stray, rows)
            for places in (3, 8, 50)
            for stray in (0.0, 0.2, 0.5)
        }
        tables |= {kind: shapes.points(kind, rows) for kind in ORDINARY}
        for name, points in tables.items():
            measured = partitions.measure(points, options.draws, options.epsilon, NAMES)
            errors = {each: measured[each]["errors"] for each in NAMES}
            shown = [" / ".join(map(partitions.short, errors[each])) for each in NAMES]
            means = {each: partitions.mean(errors[each]) for each in NAMES}
            best = min(means[each] for each in NAMES if each != "auto")
            print(f"| {name}, {rows:,} | {' | '.join(shown)} | {means['auto'] / best:.2f} |")


if __name__ == "__main__":
    main()
