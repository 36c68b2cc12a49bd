"""Make examples/visits.csv: invented visits to a hospital, for the README to be tried on.

Nobody in it exists. `python tools/make_visits.py` writes the same file again.
"""

from __future__ import annotations

import csv
import datetime as dt
import random
from pathlib import Path

TABLE = Path(__file__).parent.parent / "examples" / "visits.csv"
WARDS = {"Emergency": 4, "Medicine": 3, "Surgery": 2, "Maternity": 1}
VISITS = 1500
PATIENTS = 900
HEAD = ("patient", "ward", "age", "admitted", "days", "insured")


def visits() -> list[tuple[object, ...]]:
    """The rows: some patients come several times, and some fields are empty."""
    rng = random.Random(2025)
    ages = {f"P{number:04d}": rng.randrange(101) for number in range(PATIENTS)}
    rows: list[tuple[object, ...]] = []
    for _ in range(VISITS):
        patient = f"P{int(PATIENTS * rng.random() ** 1.5):04d}"
        (ward,) = rng.choices(list(WARDS), list(WARDS.values()))
        age = "" if rng.random() < 0.01 else ages[patient]
        admitted = dt.date(2025, 1, 1) + dt.timedelta(days=rng.randrange(365))
        days = round(min(rng.expovariate(0.25), 60), 1)
        rows.append((patient, ward, age, admitted, days, rng.choice(["true", "false"])))
    return sorted(rows, key=lambda row: str(row[3]))


if __name__ == "__main__":
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEAD, *visits()])
