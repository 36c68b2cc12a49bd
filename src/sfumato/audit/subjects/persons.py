"""Persons by their number of rows, or by what else is measured of them: noise on each bin.

Where rows are counted, a row of a data set stands for a person, and its value for the person's
number of rows. So one person is one row, whatever limit the unit states. What is measured in cells
is counted from persons and their rows, by the code that publishing uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from sfumato.audit.runs import Rows
from sfumato.audit.subjects.histograms import of_people
from sfumato.audit.subjects.subject import COSTS, RELATIONS, Subject, of
from sfumato.persons import Persons
from sfumato.privacy.unit import Unit

QUESTIONS = (Persons,)
MEASURED_IN_CELLS = (
    Persons(of="cells", axes="x"),
    Persons(most_rows=4, of="norm", axes="x"),
    Persons(most_rows=4, of="largest-cell", axes="x"),
)
PEOPLE = ((), (1,), (3, 1), (9,), (1, 1, 1, 1, 1, 1, 1, 1))
"""Persons without rows, in the first bins, in the last ones and beyond."""
NUMBERS_OF_ROWS: Rows = ((1.0,), (4.0,), (100.0,))
"""In the first bin, in the last one, and beyond it."""


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    question = Persons(most_rows=4)
    for relation, cost in product(RELATIONS, COSTS):
        unit = Unit(neighbours=relation, person="who")
        yield replace(of("Persons", question, unit, cost), universe=NUMBERS_OF_ROWS)
        for measured in MEASURED_IN_CELLS:
            name = f"Persons by {measured.of}"
            yield of_people(name, measured, unit, PEOPLE, cost)
