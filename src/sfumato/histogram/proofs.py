"""Why histograms keep their promise, as their docstrings and receipts print it."""

from __future__ import annotations

from sfumato.privacy.guarantee import Proof

PROOF = Proof(
    sensitivity="L1 = rows_per_person (twice that under replace); L2 the same, or sqrt 2 "
    "times under replace.",
    because="the cells are disjoint and fixed by the public domain, and the noise is exact on "
    "the integers.",
    not_covered="the choice of columns, bins and bounds; the time the query takes.",
    source="Dwork, McSherry, Nissim, Smith 2006, Thm 1; discrete noise: Canonne, Kamath, "
    "Steinke 2020.",
)

PERSONS = Proof(
    sensitivity="L1 = c, the largest number of cells that a person is counted in (twice that "
    "under replace); L2 = sqrt c (sqrt 2 times that under replace).",
    because="a person is counted at most once in a cell and in at most c cells, which depend "
    "on that person's rows and a secret key alone. The cells are disjoint and fixed by the "
    "public domain, and the noise is exact on the integers.",
    not_covered="the choice of columns, bins and bounds; the time the query takes; persons "
    "who appear under several ids.",
    source="Dwork, McSherry, Nissim, Smith 2006, Thm 1; discrete noise: Canonne, Kamath, "
    "Steinke 2020.",
)

RANGES = Proof(
    sensitivity="pure epsilon: each level of blocks, L1 = rows_per_person (twice that under "
    "replace). rho: L2 squared = the squared rows_per_person times the squared length of the first "
    "column of a Toeplitz matrix, in whole units (twice that under replace); less under limits by "
    "cell.",
    because="pure epsilon: the blocks of a level are disjoint and public, and the shares of the "
    "levels add up to epsilon. rho: no column of the matrix is longer than the first, its products "
    "of columns fall with their distance, and all answers share one discrete Gaussian law. True "
    "sums and noise are integers; the counts are computed from what was published.",
    not_covered="the choice of columns, bins and bounds; the time the query takes.",
    source="Hay, Rastogi, Miklau, Suciu, VLDB 2010; Li, Miklau, Hay, McGregor, Rastogi 2015; "
    "Fichtenberger, Henzinger, Upadhyay, ICML 2023; Canonne, Kamath, Steinke 2020, Thm 4.",
)
