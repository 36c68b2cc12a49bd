"""What every answer is: noisy values, their exact error law, the guarantee and the receipt, and nothing unpaid.

A question has three verbs (``Question``); a preview is what it would cost and how accurate it would be; a release is its
answer. Releases are values: they travel as JSON and can be rebuilt from it bit for bit.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
import numpy as np

from sfumato.cube import Cube
from sfumato.domain import Domain, Lattice
from sfumato.errors import UsageError
from sfumato.exact import Exactly, fraction, probability, sidak
from sfumato.mechanisms.noise import Law
from sfumato.mechanisms.thresholds import KeyLaw
from sfumato.privacy import belief
from sfumato.privacy.guarantee import Guarantee, Proof, counted_rows, left_out
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits
from sfumato.signing import valid
from sfumato.writing import write_bytes

if TYPE_CHECKING:
    import pyarrow as pa

R = TypeVar("R", bound="Release")
LEAST = Fraction(1, 10**9)  # the smallest probability of error that intervals are computed for


class Question(Protocol):
    """A frozen value that names the lattice it needs, previews itself without data and answers itself from a cube."""

    @property
    def proof(self) -> Proof:
        """Why the answer keeps its promise."""

    def needs(self, domain: Domain) -> Lattice:
        """Name the lattice on which the rows are to be counted, from public things only."""

    def most_numbers(self, lattice: Lattice) -> int:
        """Bound how many numbers the answer may hold, from public things only."""

    def preview(self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None) -> Preview:
        """Say how accurate the answer would be at this cost. ``rows`` is the holder's own public guess."""

    def answer(self, cube: Cube, unit: Unit, cost: CentralMeasure, noise: Bits) -> Release:
        """Answer from counts, spending exactly ``cost``."""


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a release stands in the ledger.

    Nothing in it depends on the data: key (unless the user named it) and digest are random, and the time is that of the
    charge, before a row was read.

    Attributes
    ----------
    account, key, digest : str
        ``digest`` is a random number that stands for question, cost, unit, source and account. What it stands for is
        known to the ledger's secrets only.
    entry : int
        Sequence number of the charge in the ledger.
    entry_hash : str
        Hash of that entry, which chains to all earlier ones.
    time : str
        UTC time of the charge.
    charged : str
        What the whole plan cost the account.
    part : str
        Which answer of the plan this is, such as "1 of 3".
    source : str
        The label of the data.
    version : str
        Of the library.
    signature, signer : str
        An Ed25519 signature of the release without it, and the public key, where the ledger has one; else "".
    """

    account: str
    key: str
    digest: str
    entry: int
    entry_hash: str
    time: str
    charged: str
    part: str
    source: str
    version: str
    signature: str = ""
    signer: str = ""


class Estimate(msgspec.Struct, frozen=True):
    """A number, or an array of them, with an interval: the truth lies in [low, high] with probability ``confidence``.

    Attributes
    ----------
    value, low, high : number or ndarray
    confidence : float
    about : str
        What the truth is of: "the rows counted", with their limit where persons have one.
    known : bool, or ndarray like ``value``
        False where the interval is all that was possible before anything was counted: the value then says nothing.
    """

    value: Any
    low: Any
    high: Any
    confidence: float
    about: str = "the rows counted"
    known: Any = True

    def __str__(self) -> str:
        at = f"at {self.confidence:.0%} confidence, of {self.about}"
        if np.ndim(self.value):
            unknown = int(np.size(self.known) - np.count_nonzero(self.known))
            return f"{np.size(self.value)} estimates {at}" + (f"; {unknown} of them not known" if unknown else "")
        value, low, high = (f"{x:,.0f}" if abs(x) >= 1000 or x == int(x) else f"{x:.4g}" for x in (self.value, self.low, self.high))
        return f"{value if self.known else 'not known'} ({low} to {high} {at})"


class Preview(msgspec.Struct, frozen=True):
    """What a question would cost and how accurate its answer would be. Touches no data, spends nothing.

    Attributes
    ----------
    question : str
        Its name and axes.
    cost : PureDP, ApproxDP or ZCDP
    unit : Unit
    cells : int or None
        How many numbers are released; None where that depends on a noisy count and no ``rows`` was stated.
    law : DiscreteLaplace, DiscreteGaussian, TruncatedGeometric or ThresholdLaplace
        Of the noise on each number.
    rows : int or None
        As stated by the holder.
    notes : tuple of str
    worst : like ``law``, or None
        The most noise that any number may get, where they differ; None: all have the same law.
    terms : int or None
        Of how many counts a number is the sum, at most; None where that depends on a noisy count and no ``rows`` was stated.
    """

    question: str
    cost: CentralMeasure
    unit: Unit
    cells: int | None
    law: Law | KeyLaw
    rows: int | None = None
    notes: tuple[str, ...] = ()
    worst: Law | None = None
    terms: int | None = 1

    @property
    def counted(self) -> str:
        """Which rows the answer would be about, and which not: every accuracy is about the rows counted."""
        return counted_rows(self.unit)

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> int:
        """Half-width of the interval of each number, of the least accurate one; ``simultaneous``: all of them hold together."""
        alpha = error_probability(confidence)
        if simultaneous and self.cells is None:
            raise UsageError("simultaneous accuracy", "the number of cells depends on a noisy count", "State rows= to preview it")
        if self.terms is None:
            raise UsageError("the accuracy of sums of counts", "how many there are depends on a noisy count", "State rows= to preview it")
        law, share = self.worst or self.law, sidak(alpha, self.cells or 1) if simultaneous else alpha
        if self.terms == 1 or not isinstance(law, Law):
            return law.half_width(share)
        return math.ceil(float(law.sum_half_width(np.array([float(self.terms)]), share)[0]))

    def __str__(self) -> str:
        lines = [f"{self.question} at {self.cost}, for {self.unit}:"]
        many = "each of an unknown number of counts" if self.cells is None else f"each of {self.cells:,} counts"
        which = "each count, and numbers are sums of them" if self.terms != 1 else "one count" if self.cells == 1 else many
        lines.append(f"  adds {self.law} to {which}")
        of = f"of {self.unit.counted}"
        if self.terms is None:
            lines.append("  how accurate each number is depends on how many rows there are: state rows= to preview it")
        elif self.worst is None:
            what = "count" if self.terms == 1 else "number"
            lines.append(f"  {of}, each {what} is within +-{self.accuracy():,} of the truth with 95% confidence")
        else:
            best, worst = self.law.half_width(0.05), self.accuracy()
            lines.append(f"  {of}, counts are within +-{best:,} of the truth at best, and within +-{worst:,} at worst, with 95% confidence")
        if self.cells is not None and self.cells > 1 and self.terms is not None:
            lines.append(f"  all of them at once are within +-{self.accuracy(simultaneous=True):,}")
        if self.rows and self.cells and self.terms == 1:
            average = self.rows / self.cells
            lines.append(f"  a cell of average size ({average:,.1f} rows) is known to +-{self.accuracy() / average:.1%}")
        lines.append(f"  {belief.warning(self.cost, self.unit) or belief.sentence(self.cost, self.unit)}")
        lines += [f"  {note}" for note in self.notes]
        return "\n".join([*lines, f"  {left_out(self.unit)}"])


class Release(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """The answer to a question. Subclasses add what they hold; every one has these attributes and verbs."""

    # What becomes of an answer after it was given is not part of it: it is kept in ``__dict__``, which is neither stored
    # nor compared.

    guarantee: Guarantee
    receipt: Receipt | None = None

    @property
    def replayed(self) -> bool:
        """Whether this is a stored answer that was given before; then nothing was spent now."""
        return bool(self.__dict__.get("replayed"))

    @property
    def loaded(self) -> bool:
        """Whether it was read from a file, which anyone may have edited."""
        return bool(self.__dict__.get("loaded"))

    @property
    def values(self) -> np.ndarray:
        """The released numbers, before any post-processing."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """The question in a few words."""
        raise NotImplementedError

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> np.ndarray:
        """Half-widths of the intervals, like ``values``.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            False: each interval holds with this confidence. True: all hold together with it (Sidak; the noise is independent).
        """
        raise NotImplementedError

    def interval(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the intervals, each like ``values``. The noise is unbiased and nothing is clipped."""
        half = self.accuracy(confidence, simultaneous)
        return self.values - half, self.values + half

    def to_frame(self) -> pa.Table:
        """One row per released number. An Arrow table: ``.to_pandas()``, ``polars.from_arrow`` and DuckDB take it as it is."""
        raise NotImplementedError

    def plot(self, ax: Any = None) -> Any:
        """Draw the answer with its error bars on a matplotlib Axes, and return the Axes."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the release as JSON; ``sf.load`` reads it back."""
        return write_bytes(path, to_bytes(self), "saving to")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and to_bytes(self) == to_bytes(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(to_bytes(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.title}; {self.guarantee.measure}{'' if self.guarantee.private else '; NOT PRIVATE'}>"


def accuracy_sentence(release: Release) -> str | None:
    """How accurate a release is, and of which rows, in one sentence; None where it states no intervals."""
    try:
        each, every = (np.asarray(release.accuracy("0.95", together), float) for together in (False, True))
    except NotImplementedError:
        return None
    if not np.isfinite(each).any():
        return None
    noun = getattr(release, "noun", "count" if hasattr(release, "counts") else "number")
    against = getattr(release, "measured_against", "of the truth")
    about = getattr(release, "about", release.guarantee.unit.counted)
    sentence = f"Of {about}, each {noun} is within {reach_text(each)} {against} with 95% confidence"
    sentence += f"; all {each.size:,} at once within {reach_text(every)}." if each.size > 1 else "."
    return f"{sentence} {getattr(release, 'unknowns', '')}".rstrip()


def reach_text(half: np.ndarray) -> str:
    """Print half-widths: one, or from the smallest to the largest; rounded up where they are large."""
    ends = [f"{math.ceil(end):,}" if end >= 100 or end == round(end) else f"{end:.4g}" for end in (np.nanmin(half), np.nanmax(half))]
    return " to ".join(f"+-{end}" for end in dict.fromkeys(ends))


def error_probability(confidence: Exactly) -> float:
    """Read a confidence such as 0.95 as the probability of error, 0.05."""
    alpha = 1 - probability(confidence, "confidence")
    if not LEAST <= alpha <= 1 - LEAST:
        raise UsageError("confidence", "it is too close to 0 or 1 for an interval that says anything", "Choose a confidence such as 0.95")
    return float(alpha)


def edge_text(edges: np.ndarray, time: str | None) -> list[str]:
    """Print edges of cells shortly: numbers, dates or times."""
    if time is None:
        return [f"{edge:g}" for edge in edges]
    return [str(moment) for moment in np.asarray(edges).astype("int64").astype("datetime64[D]" if time == "day" else "datetime64[us]")]


def edge_array(edges: np.ndarray, time: str | None) -> np.ndarray:
    """Edges as an array that a frame shows well: float64, or datetime64 for dates and times."""
    if time is None:
        return edges
    return np.asarray(edges).astype("int64").astype("datetime64[D]" if time == "day" else "datetime64[us]")


def marked(release: R, **marks: bool) -> R:
    """The same release, with a mark of what became of it: ``replayed`` or ``loaded``."""
    release.__dict__.update(marks)
    return release


def signed_part(release: Release) -> bytes:
    """The bytes that a signature covers: the release with its signature left out."""
    receipt = release.receipt
    if receipt is None:
        return to_bytes(release)
    unsigned = msgspec.structs.replace(receipt, signature="")
    return to_bytes(msgspec.structs.replace(release, receipt=unsigned))


def standing(release: Release) -> str:
    """What a page may say of a release's origin: "" for one that was just published."""
    receipt = release.receipt
    if not release.loaded:
        return ""
    if receipt is None or not receipt.signature:
        return "not verified: read from a file, and not signed"
    if not valid(receipt.signer, receipt.signature, signed_part(release)):
        return "not verified: its signature does not match"
    return f"signed with the key {receipt.signer}: compare it with the custodian's"


def to_bytes(value: Any) -> bytes:
    """Encode releases as JSON: the same bytes for the same release, always."""
    return msgspec.json.encode(value, enc_hook=_encode, order="deterministic")


def from_bytes(data: bytes, kind: Any) -> Any:
    """Decode what ``to_bytes`` wrote."""
    return msgspec.json.decode(data, type=kind, dec_hook=_decode)


def from_plain(plain: Any, kind: Any) -> Any:
    """Turn plain dicts and lists, as TOML gives them, into frozen values; unknown fields are refused."""
    return msgspec.convert(plain, kind, dec_hook=_decode)


def _encode(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.ndarray | Sequence):
        return value.tolist() if isinstance(value, np.ndarray) else list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _decode(kind: type, plain: Any) -> Any:
    if kind is Fraction:
        return fraction(plain, "a number")
    if kind is np.ndarray and isinstance(plain, list) and set(map(type, plain)) <= {int}:
        return np.array(plain, dtype=np.int64)
    raise TypeError(f"this is no {kind.__name__}")
