"""What every answer is: noisy values, their exact error law, the guarantee and the receipt, and nothing unpaid.

Releases are values: they travel as JSON and can be rebuilt from it bit for bit.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from sfumato.answers.codec import to_bytes
from sfumato.answers.receipt import Receipt
from sfumato.exact import Exactly
from sfumato.privacy.guarantee import Guarantee
from sfumato.writing import write_bytes

if TYPE_CHECKING:
    import pyarrow as pa

R = TypeVar("R", bound="Release")


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


def marked(release: R, **marks: bool) -> R:
    """The same release, with a mark of what became of it: ``replayed`` or ``loaded``."""
    release.__dict__.update(marks)
    return release
