"""Persons by their number of rows: noise on the number of persons in each bin.

A row of a data set stands for a person here, and its value for the person's number of rows. So one
person is one row, whatever limit the unit states.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from sfumato.audit.runs import Rows, of_question
from sfumato.audit.subjects.subject import COSTS, LINE, RELATIONS, Subject
from sfumato.persons import Persons
from sfumato.privacy.unit import Unit

QUESTIONS = (Persons,)
NUMBERS_OF_ROWS: Rows = ((1.0,), (4.0,), (100.0,))
"""In the first bin, in the last one, and beyond it."""


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    question = Persons(most_rows=4)
    for relation, cost in product(RELATIONS, COSTS):
        unit = Unit(neighbours=relation, person="who")
        yield Subject(
            "Persons", unit, cost, of_question(question, LINE, unit, cost), NUMBERS_OF_ROWS
        )
