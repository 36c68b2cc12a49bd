"""Why families of tables keep their promise, as their docstrings and receipts print it."""

from __future__ import annotations

from sfumato.privacy.guarantee import Proof

PROOF = Proof(
    sensitivity="of each table that is measured, L1 = rows_per_person (twice that under replace).",
    because="the cells of a table are disjoint and fixed by the public domain, the noise is exact "
    "on the integers, and the shares of the tables, which public sizes decide, add up to epsilon. "
    "All tables count the same rows. The tables that are shown follow from the noisy ones by least "
    "squares.",
    not_covered="the choice of tables, bins, weights and bounds; the time the query takes.",
    source="Dwork, McSherry, Nissim, Smith 2006, Thm 1; least squares: Xiao, He, Zhang, Kifer, "
    "NeurIPS 2023.",
)

RESIDUALS = Proof(
    sensitivity="of the residual of a table with d cells along each axis, L2 squared = the squared "
    "rows_per_person times the product of 1 - 1/d over the axes; under replace the worst case of "
    "all residuals together, by where the rows were and where they are.",
    because="of a table with exact discrete Gaussian noise only integer differences between cells "
    "are kept: such noise is a discrete Gaussian on the lattice of these differences, but for a "
    "slack that is charged. A sum of squares is convex, so a person moves it most with all rows in "
    "one cell. The rho of all residuals add up. All tables count the same rows, and follow from "
    "the residuals.",
    not_covered="the choice of tables, bins, weights and bounds; the time the query takes.",
    source="Xiao, He, Zhang, Kifer, NeurIPS 2023; Canonne, Kamath, Steinke 2020, Thm 4; the proof "
    "for integers: docs/proofs.md.",
)

IN_NORM = Proof(
    sensitivity="of all residuals together, each in units of its noise, L2 = norm_per_person times "
    "what one row adds; under replace, sqrt 2 to 2 times that, by the public inner products of "
    "rows.",
    because="of each person, rows are counted up to the first with which this norm would exceed "
    "the limit: computed in whole numbers of the person's counts in all tables, rounded against "
    "the rows. Of a table with exact discrete Gaussian noise only integer differences between "
    "cells are kept: such noise is a discrete Gaussian on the lattice of these differences, but "
    "for a slack that is charged. All tables count the same rows, and follow from the residuals.",
    not_covered="the choice of tables, bins, weights and bounds; the time the query takes.",
    source="Xiao, He, Zhang, Kifer, NeurIPS 2023; Canonne, Kamath, Steinke 2020, Thm 4; the proof "
    "for integers and for the norm: docs/proofs.md.",
)
