"""Selection of keys that were not known beforehand: which are shown, and with which noisy count.

A law adds integer noise to the count of each key that occurs and shows the keys whose noisy count
reaches the threshold. Keys that do not occur are never shown, so the rule needs no list of all
keys. One row moves one count by one; r rows are r such steps, in one key or in several, and
``key_law`` prices a step so that all of them together stay within the cost.

*Truncated geometric.* With J as in ``random.truncated`` the key is shown if and only if J <= n,
with the count n + middle - J. Let d be the masses of J.
Guarantee: (epsilon, delta) for one row more or less, of the pair (whether shown, noisy count).
Holds because: a count o is published with probability d(n - o + middle). One row more turns d(j)
into d(j + 1) for each outcome. The masses are log-concave with d(j + 1) / d(j) in [e^-eps, e^eps]
up to the last step but one. So an outcome exceeds e^eps times its neighbour in these cases only:

    row added      the outcome that was out of reach, d(1) = delta; not being shown gets rarer;
    row removed    not being shown, 1 - pi(n), against 1 - pi(n + 1), which exceeds by at most
                   delta by the second rule for pi; and after the law has ended,
                   d(last - 1) - e^eps d(last) and d(last), which together are at most delta, by
                   the same rule one step before.

*Threshold.* Discrete Laplace noise of scale r / epsilon; a key is shown if and only if its count is
at least 1 and the noisy count at least tau. A person with a_i rows in keys of their own is noticed
with probability at most the sum of q^(tau - a_i) / (1 + q), q = e^(-eps / r). As q^-a / a falls and
then grows, the sum over all ways to place r rows is at most max(r q^(tau - 1), q^(tau - r)) / (1 +
q).

*Gaussian threshold.* Where a person has at most one row of each key: ``mechanisms/gaussian_keys``.

Replace: one person's rows leave, others come; at eps / 2 and delta / (1 + e^(eps / 2)) each, the
two add up to (eps, delta).
Not covered: the time that a selection takes, which grows with the number of keys.
Source: Desfontaines, Voss, Gipson, Mandayam, PoPETs 2022; Korolova et al. 2009; Vadhan 2017,
section 3.3 (stability).

*As a value.* A ``KeyRule`` is the selection of keys as a value that engines apply where they count.
``released`` decides about all keys of a table at once, with noise from one keystream. A ``KeyRule``
decides about any part of them, wherever the engine evaluates it: the noise of a key is a function
of a secret of the release and of the key.

Guarantee: that of the law, for all keys together; in whatever parts, in whatever order and however
often the rule is applied to the same counts.
Holds because: the noise of distinct keys is as if drawn independently of the law (``Streams``,
under a secret that is used for one selection only), so what is shown of all parts together has the
same distribution as what ``released`` shows. Applied to a part again, the rule gives the same
output: nothing is shown of a second draw.
Canonical: a key's stream belongs to its type and its bytes, so 1 and "1" have noise of their own,
and a key has the same noise whatever the engine and the width of its integers.
Not covered: an engine whose rows differ between two evaluations of one part; whoever reads the
rule, which holds the secret, in an engine's memory or network.
Source: the laws above, ``gaussian_keys``; the streams: ``random/streams.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from sfumato.basics import Array, decimal
from sfumato.errors import InternalError, UsageError, require_word
from sfumato.mechanisms.gaussian_keys import (
    KeyNoise,
    ThresholdGaussian,
    check_threshold,
    gaussian_key_law,
)
from sfumato.mechanisms.noise import DiscreteLaplace, Script
from sfumato.privacy import ApproxDP, CentralMeasure, Unit
from sfumato.random import bits, truncated
from sfumato.random.bits import Bits, secret_key
from sfumato.random.discrete import check_scale
from sfumato.random.inversion import exp_minus
from sfumato.random.streams import Streams

Rule: TypeAlias = Literal["truncated-geometric", "threshold", "stability"]
RULES: tuple[Rule, ...] = ("truncated-geometric", "threshold", "stability")

# Bits of the enclosures that prices and thresholds are made from.
_DEPTH = 256


class TruncatedGeometric(
    KeyNoise, frozen=True, tag="truncated-geometric", forbid_unknown_fields=True
):
    """The noise that shows each key as often as (epsilon, delta) allows, and its count at the same
    price.

    Attributes
    ----------
    epsilon, delta : Fraction
        For one row.

    >>> law = TruncatedGeometric(Fraction(1), Fraction(1, 10**6))
    >>> law.count_kept(0.5), law.count_kept(0.95)
    (14, 16)
    """

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        truncated.shape(self.epsilon, self.delta)

    @property
    def shape(self) -> truncated.Shape:
        """Where the law turns and ends."""
        return truncated.shape(self.epsilon, self.delta)

    @property
    def threshold(self) -> int:
        return self.shape.middle

    def _draw(self, size: int, noise: bits.Bits) -> Array:
        # The sampler draws J - 1, and the noise is middle - J.
        drawn = truncated.sampler(self.epsilon, self.delta).draw(size, noise)
        return self.shape.middle - 1 - drawn

    def tail(self, x: Array) -> Array:
        # Noise of at least x is a J of at most middle - x.
        curve = _curve(self.epsilon, self.delta)
        largest_step = np.clip(self.shape.middle - np.asarray(x), 0, len(curve) - 1)
        return np.asarray(curve[largest_step])

    def __str__(self) -> str:
        return (
            f"truncated geometric noise of epsilon {decimal(self.epsilon)} "
            f"and delta {decimal(self.delta, 3)} a row"
        )


class ThresholdLaplace(KeyNoise, frozen=True, tag="threshold-laplace", forbid_unknown_fields=True):
    """Discrete Laplace noise, and a threshold ``tau``: a key is shown if its noisy count reaches
    it.

    >>> law = ThresholdLaplace(Fraction(1), 14)
    >>> law.kept([0, 14]).round(3).tolist()
    [0.0, 0.731]
    """

    scale: Fraction
    tau: int

    def __post_init__(self) -> None:
        check_scale(self.scale, "scale")
        check_threshold(self.tau)

    @property
    def threshold(self) -> int:
        return self.tau

    def sample(self, size: int, noise: bits.Bits) -> Array:
        """Draw ``size`` independent values: int64 ndarray of shape (size,)."""
        # A script is asked for the Laplace law itself: the threshold applies to what it hands out.
        return DiscreteLaplace(self.scale).sample(size, noise)

    def tail(self, x: Array) -> Array:
        x = np.asarray(x, float)
        b = float(self.scale)
        at_zero = 1 / (1 + math.exp(-1 / b))
        # Each branch is clipped to its own side, where its exponent cannot overflow.
        above = np.exp(-np.maximum(x, 0) / b) * at_zero
        steps_below = 1 - np.minimum(x, 0)
        below = 1 - np.exp(-steps_below / b) * at_zero
        return np.where(x > 0, above, below)

    def __str__(self) -> str:
        return (
            f"discrete Laplace noise of scale {decimal(self.scale)} and a threshold of {self.tau:,}"
        )


KeyLaw: TypeAlias = TruncatedGeometric | ThresholdLaplace | ThresholdGaussian


def key_law(cost: CentralMeasure, unit: Unit, rule: Rule = "truncated-geometric") -> KeyLaw:
    """Choose noise and threshold for counts of rows per key.

    Guarantee: ``cost``, for all keys together; one person moves the counts by at most
    ``unit.counts_l1`` in L1.

    Raises
    ------
    UsageError
        If the cost has no delta, or the rule is unknown.

    >>> key_law(ApproxDP("1", "1e-6"), Unit(), "stability").threshold
    31
    """
    require_word(rule, "selection", RULES)
    if not isinstance(cost, ApproxDP) or not cost.delta:
        raise UsageError(
            "keys that are not known beforehand",
            f"showing them needs a delta, and the cost is {cost}",
            "Give epsilon and delta, such as delta=1e-6, or declare Categories",
        )
    match rule:
        case "truncated-geometric":
            steps = unit.counts_l1
            return TruncatedGeometric(cost.epsilon / steps, _one_step(cost, steps))
        case "threshold":
            epsilon, delta = _one_side(cost, unit)
            scale = unit.rows_per_person / epsilon
            return ThresholdLaplace(scale, _tau(scale, unit.rows_per_person, delta))
        case "stability":
            # The source's rule: a sensitivity of 2 under either relation, and its own threshold.
            # Where that would exceed delta, the least one that does not is taken.
            _, delta = _one_side(cost, unit)
            scale = 2 * unit.rows_per_person / cost.epsilon
            # A trifle is added, so that the rounding of floats never lowers the source's threshold.
            log_share = math.log(2) - math.log(cost.delta)
            above = float(scale) * log_share * (1 + 1e-12)
            tau = max(1 + math.ceil(above), _tau(scale, unit.rows_per_person, delta))
            return ThresholdLaplace(scale, tau)


def law_of_key_counts(
    cost: CentralMeasure, unit: Unit, rule: Rule = "truncated-geometric"
) -> KeyLaw:
    """Choose noise and threshold for counts of keys, if nothing else is counted of them.

    Guarantee: that of ``key_law``. Where a person has at most one row of each key and may have
    several keys, it is instead that of ``gaussian_key_law``, if that rule is the default one and
    Gaussian noise shows keys of fewer rows. The choice depends on the cost and on the unit alone.

    >>> from sfumato.privacy.unit import Limits
    >>> unit = Unit(12, person="rider", limits=Limits(rows_per_cell=1))
    >>> cost = ApproxDP("1", "1e-6")
    >>> key_law(cost, unit).count_kept(0.5), law_of_key_counts(cost, unit).count_kept(0.5)
    (164, 79)
    """
    gaussian = None
    has_one_row = unit.limits is not msgspec.UNSET and unit.limits.rows_per_cell == 1
    if rule == "truncated-geometric" and has_one_row and isinstance(cost, ApproxDP):
        gaussian = gaussian_key_law(cost, unit.rows_counted, unit.neighbours)
    try:
        law = key_law(cost, unit, rule)
    except UsageError:
        # Rows so many that each has too little epsilon may still be few enough for the other law.
        if gaussian is None:
            raise
        return gaussian
    if gaussian is not None and gaussian.count_kept(0.5) < law.count_kept(0.5):
        return gaussian
    return law


def _one_side(cost: ApproxDP, unit: Unit) -> tuple[Fraction, Fraction]:
    """What rows that come, or rows that go, may spend: under replace one person's rows do both:
    eps / 2 and delta / (1 + e^(eps / 2)), rounded down.
    """
    if unit.neighbours == "replace":
        depth = _depth(cost.epsilon)
        half_low, half_high = exp_minus(cost.epsilon / 2, depth)
        share = Fraction(half_low, half_high + (1 << depth))
        return cost.epsilon / 2, _rounded_down(cost.delta * share)
    return cost.epsilon, cost.delta


def released(counts: Array, law: KeyLaw, noise: bits.Bits) -> tuple[Array, Array]:
    """Decide which keys are shown, and their noisy counts.

    Parameters
    ----------
    counts : int64 ndarray of shape (keys,)
        Keys of no rows are never shown.

    Returns
    -------
    indices : int64 ndarray of shape (shown,)
        Of the keys that are shown, in the order of ``counts``.
    values : int64 ndarray of shape (shown,)
        Their noisy counts.
    """
    # A key of no rows is not in the list of keys at all, so noise must not show it.
    occupied = np.flatnonzero(counts > 0)
    noisy = counts[occupied] + law.sample(len(occupied), noise)
    is_shown = noisy >= law.threshold
    return occupied[is_shown], noisy[is_shown]


# --- prices -------------------------------------------------------------------------------------


def _one_step(cost: ApproxDP, steps: int) -> Fraction:
    """delta (e^(eps / s) - 1) / (e^eps - 1), rounded down: s steps at it and eps / s are (eps,
    delta) together.

    Group privacy: delta' (1 + e^eps' + ... + e^((s - 1) eps')) = delta. With u = e^-eps' it is
    delta u^(s - 1) (1 - u) / (1 - u^s).
    """
    if steps == 1:
        return Fraction(cost.delta)
    depth = _depth(cost.epsilon)
    # In whole numbers of 2^-depth: floats could round a share up, and spend more than delta.
    unity = 1 << depth
    epsilon_a_step = cost.epsilon / steps
    # Of every enclosure the end that makes the share smaller.
    _, u_high = exp_minus(epsilon_a_step, depth)
    power_low, _ = exp_minus(cost.epsilon - epsilon_a_step, depth)
    last_power_low, _ = exp_minus(cost.epsilon, depth)
    share = Fraction(power_low * (unity - u_high), unity * (unity - last_power_low))
    return _rounded_down(cost.delta * share)


def _depth(epsilon: Fraction) -> int:
    """Bits in which e^-eps still shows."""
    return _DEPTH + math.ceil(1.5 * min(float(epsilon), 1e4))


def _rounded_down(value: Fraction) -> Fraction:
    """A few significant decimal digits, so that laws print and travel shortly."""
    if not value:
        raise UsageError(
            "selecting keys",
            "the share of delta that falls on one row is too small",
            "Choose fewer rows per person",
        )
    magnitude = math.log10(value.numerator) - math.log10(value.denominator)
    unit = Fraction(1, int(10 ** max(0, 12 - math.floor(magnitude))))
    return Fraction((value // unit) * unit)


def _tau(scale: Fraction, r: int, delta: Fraction) -> int:
    """The least tau with max(r q^(tau - 1), q^(tau - r)) / (1 + q) <= delta, q = e^(-1 / scale)."""
    # Floats give a guess, from either of the two terms; integers decide.
    b = float(scale)
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)
    log_both = math.log1p(math.exp(-1 / b))
    room = -log_both - log_delta
    together = r + math.ceil(b * room)
    apart = 1 + math.ceil(b * (room + math.log(r)))
    tau = max(1, together - 1, apart - 1)
    while not _is_safe(tau, scale, r, delta):
        tau += 1
    return tau


def _is_safe(tau: int, scale: Fraction, r: int, delta: Fraction) -> bool:
    """Whether a threshold certainly keeps both terms of ``_tau`` within delta."""
    depth = _DEPTH + delta.denominator.bit_length()
    q_low, _ = exp_minus(1 / scale, depth)
    limit = delta * ((1 << depth) + q_low)
    apart = r * exp_minus((tau - 1) / scale, depth)[1]
    # Below r the power exceeds 1, and 2 is above every limit.
    together = exp_minus((tau - r) / scale, depth)[1] if tau >= r else 2 << depth
    return max(apart, together) <= limit


# --- curves -------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _curve(epsilon: Fraction, delta: Fraction) -> Array:
    """pi(0), ..., pi(last) as floats, for intervals and curves: nothing is drawn from them."""
    low, _ = truncated.enclosed(epsilon, delta, 256)
    curve = np.array([0.0, *(value / 2**256 for value in low)])
    curve.setflags(write=False)
    return curve


# --- the selection as a value -------------------------------------------------------------------

# The column of a batch that holds the keys.
KEY = "key"

# The column that holds the true count of each key.
ROWS_OF_KEY = "rows_of_key"

# The column of the noisy counts of the keys that are shown.
NOISY_ROWS = "noisy_rows"

# How many groups are decided at a time: temporary arrays stay small, whatever a batch holds.
_TOGETHER = 2**16

# Kinds of keys: the streams of different kinds are different.
_TEXT, _INTEGER, _BOOLEAN = range(3)


@dataclass(frozen=True, repr=False)
class KeyRule:
    """Decides which keys of a batch of groups are shown, and with which noisy counts.

    A small value that can be pickled and sent to an engine's workers. Its ``repr`` does not hold
    the secret.

    Attributes
    ----------
    law : TruncatedGeometric, ThresholdLaplace or ThresholdGaussian
    secret : bytes of length 32, or Script
        Of this selection alone. Audits give a script, from which the noise is then taken in the
        order of the groups.

    >>> import pyarrow as pa
    >>> from fractions import Fraction
    >>> from sfumato.mechanisms.thresholds import ThresholdLaplace
    >>> rule = KeyRule(ThresholdLaplace(Fraction(1), 50), bytes(32))
    >>> batch = pa.record_batch({"key": ["few", "many"], "rows_of_key": [2, 1000]})
    >>> shown = rule.shown(batch)
    >>> shown.schema.names, shown["key"].to_pylist()
    (['key', 'noisy_rows'], ['many'])
    """

    law: KeyLaw
    secret: bytes | Script

    @classmethod
    def of(cls, law: KeyLaw, noise: Bits) -> KeyRule:
        """Make the rule of one selection, with a fresh secret from the given bits."""
        return cls(law, noise if isinstance(noise, Script) else secret_key(noise))

    def shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Keep the groups whose keys are shown.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            One row for each group. Columns: ``key`` (text, integers of 64 bits or booleans; groups
            of null are left out), ``rows_of_key`` (the true count of the whole key, in each group
            of it), and any others, which are kept as they are.

        Returns
        -------
        pyarrow.RecordBatch
            The groups whose keys are shown, without ``rows_of_key``, with ``noisy_rows``.
        """
        parts = [
            self._shown_part(batch.slice(start, _TOGETHER))
            for start in range(0, max(batch.num_rows, 1), _TOGETHER)
        ]
        table = pa.Table.from_batches(parts).combine_chunks()
        return table.to_batches()[0] if table.num_rows else parts[0]

    def shown_of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Keep the groups of each batch whose keys are shown; see ``shown``."""
        return map(self.shown, batches)

    def _shown_part(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        index = batch.schema.get_field_index(KEY)
        batch = batch.set_column(index, KEY, _listed(batch[KEY]))
        present = batch.filter(batch[KEY].is_valid())
        rows_of_key = present[ROWS_OF_KEY].cast(pa.int64()).to_numpy(zero_copy_only=False)
        # A key of no rows has no noise: the streams are those of the others.
        present = present.filter(pa.array(rows_of_key > 0))
        rows_of_key = rows_of_key[rows_of_key > 0]
        secret = self.secret
        keys = present[KEY]
        noise: Bits = secret if isinstance(secret, Script) else Streams(secret, *canonical(keys))
        indices, values = released(rows_of_key, self.law, noise)
        shown = present.take(pa.array(indices, pa.int64())).drop_columns([ROWS_OF_KEY])
        return shown.append_column(NOISY_ROWS, pa.array(values, pa.int64()))

    def __repr__(self) -> str:
        return f"<KeyRule by {self.law}: secret not shown>"


def canonical(keys: pa.Array) -> tuple[int, Array, Array]:
    """Give the kind of some keys, and the bytes of each.

    Returns
    -------
    kind : int
    offsets : int64 ndarray of shape (keys + 1,)
    data : uint8 ndarray
    """
    keys = _listed(keys)
    if pa.types.is_boolean(keys.type):
        return _BOOLEAN, *_fixed(keys.cast(pa.uint8()), 1)
    if pa.types.is_integer(keys.type):
        return _INTEGER, *_fixed(keys.cast(pa.int64()), 8)
    texts = keys.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    bytes_ = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    if not len(texts):
        return _TEXT, np.zeros(1, np.int64), bytes_
    # An array may be a slice: its offsets begin at ``texts.offset``.
    first = texts.offset
    return _TEXT, np.frombuffer(offsets, np.int64)[first : first + len(texts) + 1], bytes_


def _listed(keys: pa.Array) -> pa.Array:
    """Keys one by one, in a form that Arrow can filter: not in dictionaries, and not as views."""
    if pa.types.is_dictionary(keys.type):
        keys = keys.cast(keys.type.value_type)
    return keys.cast(pa.large_string()) if pa.types.is_string_view(keys.type) else keys


def _fixed(numbers: pa.Array, width: int) -> tuple[Array, Array]:
    """Offsets and bytes of numbers of one width, the lowest byte first."""
    values = np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False))
    if values.itemsize != width:
        raise InternalError("A key has another width than its type.")
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return np.arange(len(values) + 1) * width, little.view(np.uint8)
