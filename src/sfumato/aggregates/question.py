"""Means, sums and variances of a value, by group, as questions."""

from __future__ import annotations

from typing import ClassVar

from sfumato.aggregates.aggregate import Aggregate
from sfumato.aggregates.basis import BasisName
from sfumato.aggregates.preview import Statistic
from sfumato.aggregates.statistics import MeanRelease, SumRelease, VarianceRelease


class Mean(
    Aggregate[MeanRelease], frozen=True, tag="mean", omit_defaults=True, forbid_unknown_fields=True
):
    """What is the mean of a value, in each group?

    Two noisy sums are published for each group: of the distances from the value to its lower bound,
    and of those to its upper bound. Each row adds the same total to the two. So the number of rows
    follows from them, and no part of epsilon is set aside for it.

    Parameters
    ----------
    value : str, or list of str
        The Interval axis of numbers whose values are averaged. Values beyond its bounds count as
        the bounds. Several values share one scan, and each is charged the same share of the cost;
        rows that miss any of them are dropped.
    by : str, list of str, or None
        The groups: Categories axes, Interval axes in their own steps or ten bins, and at most one
        axis of Keys. Keys are selected by their numbers of rows first: that takes half of epsilon
        and all of delta. None: all rows are one group.
    clip : number, pair of numbers, "auto", or None
        Narrower public bounds for the value: an upper bound, or a lower and an upper one. The mean
        is then that of the values clipped to them. "auto": an upper bound is chosen for each group
        from its noisy sums, at no further cost.
    per : {"row", "person"}
        "row": the mean over rows. "person": the mean over persons, each of whom counts once in a
        group, with the mean of their values there; a clip is one of these means. A person is
        counted in at most ``cells_per_person`` groups of the source, else ``rows_per_person``,
        which are chosen at random. The source needs a ``person`` column. In a preview ``rows`` is
        then the number of persons.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Raises
    ------
    UsageError
        If an axis is unknown or of the wrong kind, the clip lies outside the bounds, there are too
        many groups, or persons are to be counted where no column names them.

    Guarantee
    ---------
    {proof}
    Here M is the number of lattice steps between the bounds; with ``clip="auto"`` it is the largest
    number of steps between two knots.

    With an axis of keys in ``by``, (epsilon, delta) and instead:
    {keys_proof}

    Under limits by cell, without keys:
    {limits_proof}

    With ``per="person"``, instead:
    {persons_proof}

    With ``per="person"`` and an axis of keys:
    {persons_keys_proof}

    >>> from sfumato.domain.domain import (Domain, Interval)
    >>> Mean("age", by="ward").title
    'Mean of age by ward'
    >>> Mean("age", by="ward", per="person").title
    'Mean of age over persons by ward'
    >>> needs = Mean("age").needs(Domain(age=Interval(0, 121, step=1)))
    >>> needs.sums[0].axis.size
    121
    """

    statistic: ClassVar[Statistic] = "mean"
    functions: ClassVar[BasisName] = "pair"

    def _release_type(self) -> type[MeanRelease]:
        return MeanRelease


class Sum(
    Aggregate[SumRelease], frozen=True, tag="sum", omit_defaults=True, forbid_unknown_fields=True
):
    """What is the sum of a value, in each group?

    The same two sums are published as for ``Mean``, so the release also has means and numbers of
    rows.

    Parameters
    ----------
    value : str, or list of str
        The Interval axis of numbers whose values are added up, or several. Values
        beyond its bounds count as the bounds.
    by : str, list of str, or None
        The groups: Categories axes, Interval axes in their own steps or ten bins, and at most one
        axis of Keys. Keys are selected by their numbers of rows first: that takes half of epsilon
        and all of delta. None: all rows are one group.
    clip : number, pair of numbers, "auto", or None
        Narrower public bounds for the value: an upper bound, or a lower and an upper one. "auto":
        an upper bound is chosen for each group from its noisy sums, at no further cost.
    per : {"row", "person"}
        "row": the sum over rows. "person": each person adds the sum of their values in a group,
        clipped to ``clip``, which must be given then; the axis needs a step, so that the sum of a
        person is exact. For the rest see ``Mean``.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Raises
    ------
    UsageError
        As ``Mean``; or if the bounds of a person's sum are missing, or are no multiples of the
        step.

    Guarantee
    ---------
    {proof}
    Here M is the number of lattice steps between the bounds; with ``clip="auto"`` it is the largest
    number of steps between two knots.

    With an axis of keys in ``by``, (epsilon, delta) and instead:
    {keys_proof}

    Under limits by cell, without keys:
    {limits_proof}

    With ``per="person"``, instead:
    {persons_proof}

    With ``per="person"`` and an axis of keys:
    {persons_keys_proof}

    >>> Sum("fare", by="line").title
    'Sum of fare by line'
    >>> Sum("fare", by="line", per="person", clip=(0, 500)).title
    'Sum of fare over persons by line'
    """

    statistic: ClassVar[Statistic] = "sum"
    functions: ClassVar[BasisName] = "pair"

    def _release_type(self) -> type[SumRelease]:
        return SumRelease


class Variance(
    Aggregate[VarianceRelease],
    frozen=True,
    tag="variance",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """What is the variance of a value about its mean, in each group?

    Three noisy sums are published for each group: of (R - x)^2, 2x(R - x) and x^2, where x is the
    value's number of lattice steps above the lower bound, from 0 to R. So the release also has
    means and numbers of rows.

    Parameters
    ----------
    value : str, or list of str
        The Interval axis of numbers whose variance is wanted, or several. Values
        beyond its bounds count as the bounds.
    by : str, list of str, or None
        The groups: Categories axes, Interval axes in their own steps or ten bins, and at most one
        axis of Keys. Keys are selected by their numbers of rows first: that takes half of epsilon
        and all of delta. None: all rows are one group.
    clip : number, pair of numbers, or None
        Narrower public bounds for the value: an upper bound, or a lower and an upper one.
    per : {"row", "person"}
        "row": the variance over rows. "person": the variance over persons of the means of their
        values in a group; for the rest see ``Mean``.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Raises
    ------
    UsageError
        As ``Mean``.

    Guarantee
    ---------
    {proof}
    Here M is R^2.

    With an axis of keys in ``by``, (epsilon, delta) and instead:
    {keys_proof}

    Under limits by cell, without keys:
    {limits_proof}

    With ``per="person"``, instead:
    {persons_proof}

    With ``per="person"`` and an axis of keys:
    {persons_keys_proof}

    >>> Variance("lab", by="ward").title
    'Variance of lab by ward'
    """

    statistic: ClassVar[Statistic] = "variance"
    functions: ClassVar[BasisName] = "quadratic"

    def _release_type(self) -> type[VarianceRelease]:
        return VarianceRelease


Mean.examples = (Mean("x"), Mean("x", clip=1), Mean("x", clip="auto"))
Sum.examples = (Sum("x"), Sum("x", clip="auto"))
Variance.examples = (Variance("x"),)
