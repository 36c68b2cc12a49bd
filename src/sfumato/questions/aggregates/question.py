"""Means, sums and variances of a value, by group: why they are private, and the questions.

``PROOF`` and its siblings are the sentences that releases and docstrings print. ``Aggregate`` is
what the questions ``Mean``, ``Sum`` and ``Variance`` have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Generic, Literal, NamedTuple, Self, TypeVar, cast

import msgspec

from sfumato.answers import Counts, Needs, PersonStatistic, Question
from sfumato.basics import Array, require_numbers, settle
from sfumato.domain import Domain, GridAxis, Interval, Lattice, named_axes, require_no_axis
from sfumato.errors import UsageError, printable, shown
from sfumato.mechanisms import (
    DiscreteLaplace,
    KeyLaw,
    Law,
    add_noise,
    count_law,
    key_law,
    unit_of_table,
)
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    CentralMeasure,
    Event,
    Guarantee,
    Proof,
    PureDP,
    Unit,
    laplace_event,
    sum_of,
    without_delta,
    worst_event,
)
from sfumato.questions.aggregates.clips import chosen_clips
from sfumato.questions.aggregates.encoding import (
    FINEST,
    Encoding,
    encoding_on,
    group_sums,
    person_encoding,
    value_encoding,
)
from sfumato.questions.aggregates.preview import AggregatePreview, Statistic
from sfumato.questions.aggregates.release import (
    AggregateRelease,
    MeanRelease,
    SumRelease,
    VarianceRelease,
)
from sfumato.questions.aggregates.value_sums import ValueSums
from sfumato.questions.aggregates.values import (
    BasisName,
    clipped,
    person_scale,
    plain_clip,
    rows_axis,
)
from sfumato.questions.histogram import keys
from sfumato.questions.histogram.bins import binned_lattice
from sfumato.random.bits import Bits

# --- why they are private -------------------------------------------------------------------------

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


# --- what the questions have in common ------------------------------------------------------------

A_co = TypeVar("A_co", bound=AggregateRelease, covariant=True)


class Aggregate(Question[A_co], Generic[A_co], frozen=True):
    """What means, sums and variances have in common. A subclass says which basis is summed.

    Parameters
    ----------
    value : str, or list of str
        The Interval axis whose values are added up, or several of them. Each of several is charged
        the same share of the cost.
    by : str, list of str, or None
        The groups: Categories, Interval axes in their own steps or ten bins, and at most one axis
        of Keys. None: all rows are one group.
    clip : number, pair of numbers, "auto", or None
        Narrower public bounds for the value: an upper bound, or a lower and an upper one. "auto":
        an upper bound chosen from the noisy sums. None: the bounds of the axis.
    per : {"row", "person"}
        What has a value: each row, or each person in a group.
    """

    value: str | Sequence[str]
    by: str | Sequence[str] | None = None
    clip: float | tuple[float, float] | Literal["auto"] | None = None
    per: Literal["row", "person"] = "row"

    statistic: ClassVar[Statistic]
    functions: ClassVar[BasisName]
    release_class: ClassVar[type[AggregateRelease]]
    limits_by_cell: ClassVar[bool] = True
    proof: ClassVar[Proof] = PROOF
    keys_proof: ClassVar[Proof] = KEYS_PROOF
    limits_proof: ClassVar[Proof] = LIMITS_PROOF
    persons_proof: ClassVar[Proof] = PERSONS_PROOF
    persons_keys_proof: ClassVar[Proof] = PERSONS_KEYS_PROOF

    def __post_init__(self) -> None:
        super().__post_init__()
        names = _value_names(self.value)
        settle(
            self,
            # One value has one form, whether or not it was written as a list.
            value=names[0] if len(names) == 1 else names,
            clip=plain_clip(self.clip),
            by=None if self.by is None else named_axes(self.by),
        )
        self._require_fitting_clip()
        for name in names:
            if name in self._groups:
                raise UsageError(
                    f"the {self.statistic} of {name!r} by itself",
                    "a value is constant in its own groups",
                    "Name other groups",
                )

    def _require_fitting_clip(self) -> None:
        if self.per not in ("row", "person"):
            raise UsageError(
                f"per = {shown(self.per)}", "a row or a person has a value", 'Write per="person"'
            )
        if self.per == "person" and self.statistic == "sum" and self.clip in (None, "auto"):
            raise UsageError(
                self.title,
                "the bounds of the axis are those of a row, and a person's sum needs its own",
                "Give them as a clip, such as clip=(0, 500) (command line: --clip 0:500)",
            )
        if self.clip == "auto" and self.statistic == "variance":
            raise UsageError(
                f'{self.title}, with clip = "auto"',
                "a clip can be chosen for means and sums only",
                "Give the clip as a number, such as clip=200",
            )
        if self.clip not in (None, "auto") and len(self._values) > 1:
            raise UsageError(
                f"{self.title}, with clip = {shown(self.clip)}",
                "one clip does not fit values of different scales",
                'Ask for each value by itself, declare narrower bounds, or write clip="auto"',
            )

    @property
    def _values(self) -> tuple[str, ...]:
        return _value_names(self.value)

    @property
    def _groups(self) -> tuple[str, ...]:
        return () if self.by is None else tuple(named_axes(self.by))

    @property
    def axes(self) -> tuple[str, ...]:
        """The groups' axes, then those of the values."""
        return (*self._groups, *self._values)

    def asks(self, domain: Domain) -> object:
        """The canonical form with its groups in the order of the domain."""
        groups = tuple(sorted(self._groups, key=list(domain).index)) or None
        return msgspec.structs.replace(self, by=groups).canonical(domain)

    @property
    def layout(self) -> tuple[str, ...]:
        return self._groups

    @property
    def title(self) -> str:
        by = " and ".join(map(printable, self._groups))
        values = " and ".join(map(printable, self._values))
        title = f"{self.statistic.capitalize()} of {values}"
        if self.per == "person":
            title += " over persons"
        return f"{title} by {by}" if by else title

    def canonical(self, domain: Domain) -> Self:
        """Write a clip from the lower bound of the axis as an upper bound alone.

        Its axes are named already, so there is nothing else that could be written otherwise.
        """
        domain.select(self.axes)
        axis = domain[self._values[0]]
        if isinstance(self.clip, tuple) and isinstance(axis, Interval):
            low, high = self.clip
            if low == axis.numbers[0]:
                return msgspec.structs.replace(self, clip=high)
        return self

    def needs(self, domain: Domain) -> Needs:
        """The groups, and the values that are added up in them, in the finest steps there are."""
        return self._needs(domain, FINEST)

    def needs_at(self, domain: Domain, unit: Unit, cost: CentralMeasure) -> Needs:
        """The groups, and the values that are added up in them.

        A value is rounded to steps before it is added up. How fine they are follows from the cost.
        """
        groups = self._group_lattice(domain)
        share = self._divided(groups, self._unit_of_sums(unit, groups, cost), cost)
        return self._needs(domain, share.count_noise)

    def _needs(self, domain: Domain, count_noise: Law) -> Needs:
        """Return the cells and sums, with noise on a count that bounds how fine the values are."""
        groups = self._group_lattice(domain)
        encodings = self._encodings(domain, count_noise)
        numbers = groups.public_size * sum(encoding.basis.size for encoding in encodings)
        require_numbers(self.title, numbers)
        segments = [encoding.segments for encoding in encodings]
        inner = [axis for axis in segments if axis is not None]
        lattice = Lattice((*groups.axes, *inner))
        sums = tuple(encoding.summed for encoding in encodings)
        if self.per == "person":
            return Needs(lattice, numbers, sums, counted="persons")
        # Limits by cell are about groups: a person's rows in one group all add to the same sums.
        return Needs(lattice, numbers, sums, cells=None if lattice == groups else groups)

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> AggregatePreview:
        """Say how accurate the statistic would be. Means and variances need ``rows`` for that."""
        groups = self._group_lattice(domain)
        unit = self._unit_of_sums(unit, groups, cost)
        share = self._divided(groups, unit, cost)
        self._needs(domain, share.count_noise)  # too many numbers are refused
        return AggregatePreview(
            self.title,
            share.spent,
            unit,
            groups.size if share.selects is None else None,
            encodings=self._encodings(domain, share.count_noise),
            statistic=self.statistic,
            rows=rows,
            selects=share.selects,
        )

    def event(self, domain: Domain, unit: Unit, cost: CentralMeasure) -> Event:
        """State the noise on the sums of each value, and what selects keys.

        A row adds M steps in all to the sums of its group, wherever its value lies.
        """
        groups = self._group_lattice(domain)
        counted = self._unit_of_sums(unit, groups, cost)
        share = self._divided(groups, counted, cost)
        drawn = []
        for encoding in self._encodings(domain, share.count_noise):
            if not isinstance(encoding.law, DiscreteLaplace):
                return worst_event(share.spent)
            drawn.append(laplace_event(encoding.law.scale, counted, encoding.basis.unity))
        if share.selects is not None:
            drawn.append(worst_event(keys.selection_share(cost)[0]))
        return sum_of(drawn)

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> A_co:
        """Add exact noise to the sums of the basis' functions in every group.

        If groups are keys, they are selected first. The values are answered in their order.
        """
        cube = counts.on(counts.lattice)
        n_group_axes = len(self._groups)
        groups = Lattice(cube.lattice.axes[:n_group_axes])
        unit = self._unit_of_sums(unit, groups, cost)
        share = self._divided(cube.lattice, unit, cost)
        encodings = tuple(self._encoding_on(axis, share.count_noise) for axis in cube.summed)
        mechanism = _mechanism(encodings)
        # Keys are selected first: sums of keys that are not shown never get to the noise.
        if share.selects is not None:
            cube, _ = keys.select_keys(cube, share.selects, noise)
            mechanism = f"{mechanism}; keys are selected by {share.selects}"
        tables = []
        for index, encoding in enumerate(encodings):
            true_sums = group_sums(cube, encoding.basis, n_group_axes, index).ravel()
            tables.append(self._published(add_noise(true_sums, encoding.law, noise), encoding))
        first, *others = tables
        release = self.release_class(
            scale=first.scale,
            basis=first.basis,
            lattice=Lattice(cube.lattice.axes[:n_group_axes]),
            released=first.released,
            law=first.law,
            knot_indices=first.knot_indices,
            spans=first.spans,
            others=tuple(others) if others else msgspec.UNSET,
            guarantee=self._promised(share, unit, mechanism, noise),
        )
        return cast("A_co", release)

    def _promised(self, share: _Share, unit: Unit, mechanism: str, noise: Bits) -> Guarantee:
        has_keys = share.selects is not None
        if self.per == "row":
            proof = (
                self.keys_proof if has_keys else self.limits_proof if unit.by_cell else self.proof
            )
            return self.promise(share.spent, unit, mechanism, noise, proof=proof)
        proof = self.persons_keys_proof if has_keys else self.persons_proof
        promised = self.promise(share.spent, unit, mechanism, noise, proof=proof)
        of_rows = "sum" if self.statistic == "sum" else "mean"
        made_of = (
            f"The value of {unit.anyone} in a cell is the {of_rows} of the values of all of "
            "their rows there."
        )
        return msgspec.structs.replace(promised, counted=f"{promised.counted} {made_of}")

    def _group_lattice(self, domain: Domain) -> Lattice:
        """Lay the groups along their axes: labels, own steps or ten bins, or keys.

        Refuse more than one axis of keys, and too many groups beside one.
        """
        domain.select(self.axes)
        lattice = binned_lattice(domain, self._groups)
        keys.check_keys(self.title, lattice)
        return lattice

    def _unit_of_sums(self, unit: Unit, groups: Lattice, cost: CentralMeasure) -> Unit:
        """What one person changes of the sums: M times what they change of the counts of groups."""
        if self.per == "row":
            return unit if groups.keyed else unit_of_table(without_delta(cost), unit, groups.size)
        # A value of a person is nothing where nobody knows whose rows are whose.
        if unit.person is None:
            raise UsageError(
                self.title, "no column names the persons", 'Give the source person="rider"'
            )
        # Nobody is counted in more groups than there are.
        return unit.counting_persons(min(unit.cells_of_person, groups.size))

    def _encodings(self, domain: Domain, count_noise: Law) -> tuple[Encoding, ...]:
        return tuple(
            self._encoding(name, self._interval(domain, name), count_noise) for name in self._values
        )

    def _encoding(self, name: str, interval: Interval, count_noise: Law) -> Encoding:
        if self.per == "row":
            return value_encoding(self.title, name, interval, self._basis_name, count_noise)
        return self._encoding_of_persons(rows_axis(name, interval), count_noise)

    def _encoding_on(self, axis: GridAxis, count_noise: Law) -> Encoding:
        if self.per == "row":
            return encoding_on(axis, self._basis_name, count_noise)
        return self._encoding_of_persons(axis, count_noise)

    def _encoding_of_persons(self, rows: GridAxis, count_noise: Law) -> Encoding:
        """Return how a person's value is summed, whose rows are located on an axis."""
        clip = None if self.clip == "auto" else self.clip
        of_rows: PersonStatistic = "sum" if self.statistic == "sum" else "mean"
        scale = person_scale(self.title, rows, of_rows, clip)
        return person_encoding(self.title, scale, self._basis_name, count_noise)

    def _divided(self, lattice: Lattice, unit: Unit, cost: CentralMeasure) -> _Share:
        """Divide a cost between what selects keys, if there are any, and each value.

        Each value is charged the same share of what the selection of keys leaves.
        """
        selects: KeyLaw | None = None
        spent = rest = without_delta(cost)
        if lattice.keyed:
            # Basic composition: the values share what the selection of keys leaves.
            selection_cost, rest = keys.selection_share(cost)
            selects = key_law(selection_cost, unit)
            spent = cost
        return _Share(spent, selects, count_law(_part_of(rest, len(self._values)), unit))

    def _published(self, released: Array, encoding: Encoding) -> ValueSums:
        """Return the noisy sums of one value, and the clips that are chosen from them."""
        values = encoding.values
        basis = encoding.basis
        if self.clip != "auto":
            return ValueSums(values, basis, released, encoding.law)
        sums = released.reshape(-1, basis.size).astype(float)
        zero = -values.lower / values.width if self.statistic == "sum" else None
        clips, spans = chosen_clips(sums, basis, encoding.law, zero)
        return ValueSums(values, basis, released, encoding.law, clips, spans)

    @property
    def _basis_name(self) -> BasisName:
        return "hats" if self.clip == "auto" else self.functions

    def _interval(self, domain: Domain, name: str) -> Interval:
        """Return the axis of a value, narrowed to the clip."""
        axis = domain[name]
        if not isinstance(axis, Interval) or axis.time is not None:
            kind = "dates or times" if isinstance(axis, Interval) else type(axis).__name__
            raise UsageError(
                self.title,
                f"{name!r} is declared as {kind}, which cannot be added up",
                "Name an Interval axis of numbers",
            )
        if self.clip is None or self.clip == "auto":
            return axis
        if self.per == "row":
            return clipped(self.title, axis, self.clip)
        if self.statistic != "sum":
            # Rows keep their bounds: a person's values are averaged before they are clipped.
            clipped(self.title, axis, self.clip)
        return axis


class _Share(NamedTuple):
    """How a cost is divided.

    Attributes
    ----------
    spent : measure
        In all.
    selects : TruncatedGeometric, ThresholdLaplace or None
        What selects the keys.
    count_noise : DiscreteLaplace or DiscreteGaussian
        The noise on a count of rows at the cost of one value: that on its sums is M times as large.
    """

    spent: CentralMeasure
    selects: KeyLaw | None
    count_noise: Law


def _value_names(value: object) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    listed = list(given) if isinstance(given, list | tuple) else []
    names = tuple(name for name in listed if isinstance(name, str) and name)
    if not names or len(names) < len(listed):
        stated = f"a value of type {type(value).__name__}"
        require_no_axis(value, stated)
        raise UsageError(
            stated,
            "a value is the name of one axis, and several are a list of names",
            'Write sf.Mean("wage")',
        )
    if len(set(names)) < len(names):
        raise UsageError(
            f"the values {' and '.join(map(printable, names))}",
            "one is named twice",
            "Name each value once",
        )
    return names


def _part_of(cost: CentralMeasure, parts: int) -> CentralMeasure:
    match cost:
        case PureDP(epsilon=epsilon):
            return PureDP(epsilon / parts)
        case ZCDP(rho=rho):
            return ZCDP(rho / parts)
        case ApproxDP():
            raise TypeError("sums need no delta")


def _mechanism(encodings: tuple[Encoding, ...]) -> str:
    """Say what adds the randomness. Releases store this sentence."""
    if len(encodings) == 1:
        (encoding,) = encodings
        return f"{encoding.law} on each of {encoding.basis.size} sums in each group"
    return ", ".join(
        f"{encoding.law} on each of {encoding.basis.size} sums of "
        f"{printable(encoding.values.name)} in each group"
        for encoding in encodings
    )


# --- the questions --------------------------------------------------------------------------------


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
    >>> needs = Mean("age").needs(Domain(age=Interval(0, 120, step=1)))
    >>> needs.sums[0].axis.size
    121
    """

    statistic: ClassVar[Statistic] = "mean"
    functions: ClassVar[BasisName] = "pair"
    release_class: ClassVar[type[AggregateRelease]] = MeanRelease


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
    release_class: ClassVar[type[AggregateRelease]] = SumRelease


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
    release_class: ClassVar[type[AggregateRelease]] = VarianceRelease


Mean.examples = (Mean("x"), Mean("x", clip=1), Mean("x", clip="auto"))
Sum.examples = (Sum("x"), Sum("x", clip="auto"))
Variance.examples = (Variance("x"),)
