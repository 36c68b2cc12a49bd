"""What all randomness of one charge comes from, so that it may be resumed as often as it is asked.

A charge is on disk before a row is read, and is never given back. A program that is stopped
afterwards leaves a charge without an answer. If each further attempt drew new noise, whatever
stops attempts would choose among draws: of a count whose attempts are stopped while it is above 0,
only those at most 0 would ever be published.

*The seed* of a charge is a key for its noise, and what chooses each person's rows: a second key,
and the axes whose values it hashes. It is kept in the secrets of the ledger with the name of the
charge, before a row is read, and wiped when the answer is stored. Each attempt draws from it.

Guarantee: whichever attempts fail, and for whatever reason, what is published under a charge is
the one answer that follows from its data and its seed, or nothing. So the answer has the law of a
single run of its mechanism, and the charge covers its privacy loss.
Holds because: (1) Let D be the state of the data that the charge was made for. Noise, selections
and the choice of rows are functions of the seed alone (``random.bits.Derived``, ``data/bounding``),
and counts are the same on any number of threads and in any process; so each attempt that comes to
its end would store the same numbers A(D, seed). The seed is drawn independently of D and of all
other seeds. (2) Which attempts fail may depend on D, on the seed, and on whoever stops programs. It
decides whether A(D, seed) is published, and when, and never in its place another value. With new
noise in each attempt it would be the law of A given that no attempt fails. (3) Another state D' of
the data is another question: it has another name in the secrets, and is never given this seed. Two
answers from one seed would differ by the data alone. The state is read before the charge, and again
after each scan; if it changed meanwhile, nothing is stored. The charge stays with D: should the
data be in that state again, A(D, seed) may still be published, because nothing that was drawn for
D' depends on the seed. (4) Of all attempts one is stored, by comparison in the ledger, and the seed
goes with it: no second answer is drawn from it, and who reads the secrets later cannot take the
noise off an answer.
Not covered: whether and when attempts fail, which is seen from outside and may depend on the data.
A table in memory or on another server whose rows change although its name, by which its state is
told, stays the same. Another version of the library, or another processor, that computes other
numbers from the same seed: its attempt is one further draw. Copies of the seed that are not the
ledger's: backups, swap, and a database server's log of changes, until it is recycled.
"""

from __future__ import annotations

from typing import NamedTuple

from sfumato.answers import to_bytes
from sfumato.answers.codec import from_bytes
from sfumato.answers.counts import NearestAxis
from sfumato.domain.lattice import LatticeAxis
from sfumato.publishing.counting import RowChoice

KEY = 32  # bytes of a key
KEPT_AXES = tuple[LatticeAxis | NearestAxis, ...]
"""``ChosenBy``, with each kind of axis by its name."""


class Draws(NamedTuple):
    """The seed of one charge.

    Attributes
    ----------
    key : bytes
        What noise and selections are drawn from.
    rows : RowChoice
    """

    key: bytes
    rows: RowChoice

    def kept(self) -> bytes:
        """Return it as the secrets of a ledger keep it."""
        return self.key + self.rows.key + to_bytes(self.rows.axes)

    @classmethod
    def of(cls, seed: bytes) -> Draws:
        """Return what the secrets kept."""
        key = seed[:KEY]
        axes = from_bytes(seed[2 * KEY :], KEPT_AXES)
        return cls(key, RowChoice(seed[KEY : 2 * KEY], axes))
