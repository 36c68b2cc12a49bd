"""Why means, sums and variances keep their promises, as releases and docstrings print it."""

from __future__ import annotations

from sfumato.privacy.guarantee import Proof

PROOF = Proof(
    sensitivity="of the sums of one group's functions, L1 = rows_per_person times M (twice that "
    "under replace); L2 the same, or "
    "sqrt 2 times under replace; M is what the functions add up to at every value.",
    because="a row lies in one group and adds to its sums non-negative integers that add up to M, "
    "the groups are fixed by the public "
    "domain, and the noise is exact on the integers.",
    not_covered="the choice of columns, groups and bounds; the time the query takes.",
    source="Dwork, McSherry, Nissim, Smith 2006, Thm 1; Kulesza, Suresh, Wang, ICML 2024; "
    "discrete noise: Canonne, Kamath, Steinke 2020.",
)


KEYS_PROOF = Proof(
    sensitivity="of the rows per key, L1 = rows_per_person (twice that under replace); of the sums "
    "of the keys that are shown, as for groups that are known beforehand.",
    because="half of epsilon and all of delta select the keys by their numbers of rows; the rest "
    "of epsilon is spent on the sums of the keys that are shown. A row lies in one group and adds "
    "to its sums non-negative integers that add up to M, whatever keys are shown. The two parts "
    "together spend the cost (basic composition).",
    not_covered="the choice of columns, groups and bounds; the time the query takes, which grows "
    "with the number of keys.",
    source="Desfontaines, Voss, Gipson, Mandayam, PoPETs 2022, Thm 1; Dwork, McSherry, Nissim, "
    "Smith 2006, Thm 1; Kulesza, Suresh, Wang, ICML 2024.",
)


LIMITS_PROOF = Proof(
    sensitivity="of the sums of all groups' functions, M times that of the numbers of rows per "
    "group, whose L1 and L2 follow from the limits on a person's rows (replace: L1 twice, L2 times "
    "sqrt 2); M is what the functions add up to at every value.",
    because="a row lies in one group and adds to its sums non-negative integers that add up to M. "
    "So k rows of a person change the sums of a group by k M in L1 and at most k M in L2; over "
    "disjoint groups, that is M times the norm of the person's numbers of rows per group. Vectors "
    "without negative entries that replace each other differ by at most sqrt 2 times the longer "
    "one. The groups are fixed by the public domain, and the noise is exact on the integers.",
    not_covered="the choice of columns, groups and bounds; the time the query takes.",
    source="Dwork, McSherry, Nissim, Smith 2006, Thm 1; Kulesza, Suresh, Wang, ICML 2024; "
    "discrete noise: Canonne, Kamath, Steinke 2020.",
)


PERSONS_PROOF = Proof(
    sensitivity="of the sums of all groups' functions, L1 = c M (twice that under replace); "
    "L2 = sqrt c M (sqrt 2 times that under replace); c is the largest number of groups that a "
    "person is counted in, and M is what the functions add up to at every value.",
    because="a person has one value in a group and is counted in at most c groups; both depend on "
    "that person's rows and a secret key alone. In each of these groups the person adds "
    "non-negative integers that add up to M, so their L2 norm is at most M as well. Two persons' "
    "vectors of such integers have an inner product that is not negative, so their difference has "
    "at most sqrt 2 times the L2 norm. The groups are fixed by the public domain, and the noise is "
    "exact on the integers.",
    not_covered="the choice of columns, groups and bounds; the time the query takes; persons who "
    "appear under several ids.",
    source="Dwork, McSherry, Nissim, Smith 2006, Thm 1; Amin, Kulesza, Munoz, Vassilvitskii, ICML "
    "2019; Kulesza, Suresh, Wang, ICML 2024; discrete noise: Canonne, Kamath, Steinke 2020.",
)


PERSONS_KEYS_PROOF = Proof(
    sensitivity="of the persons per key, L1 = c, the largest number of groups that a person is "
    "counted in (twice that under replace); of the sums of the keys that are shown, as for groups "
    "that are known beforehand.",
    because="half of epsilon and all of delta select the keys by their numbers of persons; the "
    "rest of epsilon is spent on the sums of the keys that are shown. A person has one value in a "
    "group and is counted in at most c groups, whatever keys are shown, and adds to the sums of "
    "each non-negative integers that add up to M. The two parts together spend the cost (basic "
    "composition).",
    not_covered="the choice of columns, groups and bounds; the time the query takes, which grows "
    "with the number of keys; persons who appear under several ids.",
    source="Desfontaines, Voss, Gipson, Mandayam, PoPETs 2022, Thm 1; Dwork, McSherry, Nissim, "
    "Smith 2006, Thm 1; Kulesza, Suresh, Wang, ICML 2024.",
)
