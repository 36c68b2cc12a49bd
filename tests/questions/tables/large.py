"""Run a family of 10^7 cells in a process of its own, and print seconds and the peak of memory.

Places of three levels, of unequally many children, by age and sex: ``python -m tables.large``.
"""

from __future__ import annotations

import json
import resource
import time
from fractions import Fraction

import numpy as np

from questions.tables.families import assert_adds_up, tree
from sfumato.privacy.measures import ZCDP
from sfumato.privacy.unit import Unit
from sfumato.questions.tables.design import design_for, estimated, family_of
from sfumato.questions.tables.gaussian_design import Aim
from sfumato.questions.tables.levels import Levels, Margin, Nesting
from sfumato.questions.tables.rounding import rounded
from sfumato.random.bits import current

SIZES = (20, 400, 50_000)
TABLES: tuple[Margin, ...] = ((3, 1, 1), (2, 1, 0), (1, 0, 1), (0, 1, 1))


def axes() -> tuple[Levels, ...]:
    """Countries, regions and municipalities; ages; sexes."""
    return tree(SIZES), Levels.flat(100), Levels.flat(2)


def main() -> None:
    """Count, add noise, estimate and round; print the figures as JSON."""
    family_axes = axes()
    nesting = Nesting(family_axes)
    rng = np.random.default_rng(0)
    full = TABLES[0]
    # Few places are large: most cells of small ones are 0 or 1.
    sizes = rng.pareto(1.2, nesting.axes[0].cells(3))
    means = 3e7 * sizes[:, None, None] / sizes.sum() / 200
    truth = rng.poisson(np.broadcast_to(means, nesting.shape(full)))
    started = time.perf_counter()
    design = design_for(family_axes, TABLES, Aim(), ZCDP(Fraction(1, 2)), Unit())
    tables = {each.margin: nesting.margin(truth, full, each.margin) for each in design.measured}
    noisy = design.measure(tables, current())
    residuals = estimated(family_axes, design.measured, noisy)
    family = family_of(family_axes, design.measured)
    estimates = {table: family.estimate(table, residuals) for table in TABLES}
    del tables, noisy, residuals
    answered = time.perf_counter()
    before = time.process_time()
    found = rounded(estimates, nesting)
    done = time.perf_counter()
    processor = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert_adds_up(found, nesting)
    errors = {}
    for table in TABLES:
        true = nesting.margin(truth, full, table)
        errors[str(table)] = {
            "cells": true.size,
            "rms error of the estimates": rms(estimates[table] - true),
            "rms error of the whole numbers": rms(found[table] - true),
            "rms distance between them": rms(found[table] - estimates[table]),
        }
    seconds = {
        "noise and estimates": answered - started,
        "published()": done - answered,
        "published(), of the processor": processor,
    }
    print(json.dumps({"seconds": seconds, "peak bytes": peak, "tables": errors}))


def rms(errors: np.ndarray) -> float:
    """The root of the mean square."""
    return float(np.sqrt(np.mean(np.square(errors, dtype=np.float64))))


if __name__ == "__main__":
    main()
