"""Counts of one source, kept for later questions for as long as the data stay the same.

*What all randomness of one charge comes from* (``Draws``), so that the charge may be resumed as
often as it is asked for.

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

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import msgspec

from sfumato.answers import Counts, NearestAxis, Needs, ShownKeys
from sfumato.basics import from_bytes, renewed_in_children, to_bytes
from sfumato.data import Source, count, select_in_engine, selects
from sfumato.data.bounding import fresh_key
from sfumato.data.priorities import ChosenBy, chosen_by
from sfumato.data.reader import Progress
from sfumato.domain import Cube, Domain, Lattice, LatticeAxis
from sfumato.errors import DataError, InternalError
from sfumato.mechanisms import KeyRule
from sfumato.privacy import StackedNorm
from sfumato.random.bits import Bits


class _CachedCube(NamedTuple):
    """A cube, what it counts, and what chose each person's rows for it, beside the key."""

    needs: Needs
    cube: Cube
    choice: ChosenBy


class RowChoice(NamedTuple):
    """What chooses which rows of each person count.

    Attributes
    ----------
    key : bytes
        The secret under which rows are hashed.
    axes : ChosenBy
        The axes whose values are hashed.
    """

    key: bytes
    axes: ChosenBy


KEY = 32  # bytes of a key


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
        # ``ChosenBy``, with each kind of axis by its name.
        axes = from_bytes(seed[2 * KEY :], tuple[LatticeAxis | NearestAxis, ...])
        return cls(key, RowChoice(seed[KEY : 2 * KEY], axes))


class Counting:
    """Counts a source in as few scans as its questions allow.

    Attributes
    ----------
    queries : int
        How many queries or scans of the source there were since `begin`. Whether there is another
        one depends on the questions, and on what they have paid for.
    lock : RLock
        To be held from `begin` to the last count of an answer. A second thread could otherwise
        begin in between, and the first one's later counts would be of other rows of each person.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._renew()
        renewed_in_children(self, Counting._renew)

    def _renew(self) -> None:
        """Begin anew, as a child process must: a thread of its parent may have been counting."""
        self.lock = threading.RLock()
        self.queries = 0
        self._cubes: list[_CachedCube] = []
        # What the cubes at hand were counted from, and the noise that answers from them get.
        self._label: str | None = None
        self._noise: Bits | None = None
        self._row_choice_key = b""
        self._row_choice: RowChoice | None = None

    def proposed_choice(self, label: str, noise: Bits, needs: list[Needs]) -> RowChoice:
        """Return the choice of rows for a charge that may be made: that of the cubes at hand.

        If they are of another state of the data, it is a new one. Parameters are those of `begin`
        and `counts`.
        """
        with self.lock:
            if self._keeps(label, noise):
                return RowChoice(self._row_choice_key, self._choice_for(needs))
        return RowChoice(fresh_key(), () if self._source.unit.person is None else chosen_by(needs))

    def _keeps(self, label: str, noise: Bits) -> bool:
        """Tell whether the cubes at hand are counts of the same data, for the same noise."""
        same = self._label == label and self._noise is noise
        return same and not self._source.in_memory

    def begin(self, label: str, noise: Bits, choice: RowChoice | None = None) -> None:
        """Keep the cubes at hand only if they are counts of the same data, and of the same rows.

        Parameters
        ----------
        label : str
            Tells the state of the data. A table in memory may have been changed in place without a
            trace in its label, so it is always counted again.
        noise : Bits
            Answers with noise from a public seed get counts of their own.
        choice : RowChoice or None
            The choice of rows that was kept with the charge, so that whoever resumes it counts the
            same rows. None: any.
        """
        self.queries = 0
        self._row_choice = choice
        is_same_choice = choice is None or choice.key == self._row_choice_key
        if is_same_choice and self._keeps(label, noise):
            return
        # Which rows of a person count is chosen under this key, alike on every lattice. It must
        # never be guessed, so a new one stands before any count can be made under it.
        self._row_choice_key = fresh_key() if choice is None else choice.key
        self._cubes = []
        self._label = label
        self._noise = noise

    def counts(self, needs: list[Needs], progress: Progress | None) -> list[Counts]:
        """What each question of a plan may ask of the data.

        One scan counts whatever no cube at hand can give. All counts are of one choice of each
        person's rows, and so of one subset of the table. Those from which an engine selects keys
        are made when they are asked for.

        Raises
        ------
        DataError
            If the data were changed meanwhile: the answer would mix two states of them.
        """
        # A finer lattice, too, is counted under this choice: in both scans a person keeps the same
        # rows, so parallel composition may span them.
        chosen = self._row_choice
        choice = self._choice_for(needs) if chosen is None else chosen.axes
        at_once = [need for need in needs if not selects(self._source, need)]
        cubes = iter(self._cubes_of(at_once, choice, progress))
        counts: list[Counts] = []
        for need in needs:
            recount = partial(self._recounted, need, choice, progress)
            if selects(self._source, need):
                selected = partial(self._selected, need, choice)
                counts.append(EngineCounts(need.lattice, selected, recount, self._source.domain))
                continue
            shared = recount if self._is_shared(need) else None
            counts.append(ReleaseCounts(next(cubes), shared, self._source.domain, need.norm))
        return counts

    def _recounted(
        self, needs: Needs, choice: ChosenBy, progress: Progress | None, lattice: Lattice
    ) -> Cube:
        finer = msgspec.structs.replace(needs, lattice=lattice)
        return self._cubes_of([finer], choice, progress)[0]

    def _choice_for(self, needs: list[Needs]) -> ChosenBy:
        """Return the columns whose values choose each person's rows, together with the key.

        These are all columns that are counted, unless cubes at hand give all counts.
        """
        if self._source.unit.person is None:
            return ()
        counted = [_without_numbers(need) for need in needs]
        for choice in dict.fromkeys(cached.choice for cached in self._cubes):
            if all(self._cached(need, choice) is not None for need in counted):
                return choice
        return chosen_by(counted)

    def _cubes_of(
        self, needs: list[Needs], choice: ChosenBy, progress: Progress | None
    ) -> list[Cube]:
        counted = [_without_numbers(need) for need in needs]
        missing = [need for need in dict.fromkeys(counted) if self._cached(need, choice) is None]
        needed = self._finest(missing)
        if needed:
            self.queries += 1
            cubes = count(self._source, needed, progress, key=self._row_choice_key, choice=choice)
            self._cubes += [
                _CachedCube(need, cube, choice) for need, cube in zip(needed, cubes, strict=True)
            ]
            self._require_unchanged()
        cubes_at_hand = [self._cached(need, choice) for need in counted]
        return [cube for cube in cubes_at_hand if cube is not None]

    def _finest(self, needs: list[Needs]) -> list[Needs]:
        """Return those needs whose cubes do not follow from the cubes of others."""
        shared = [need.lattice for need in needs if self._is_shared(need)]
        return [
            need
            for need in needs
            if not self._is_shared(need)
            or not any(other != need.lattice and other.refines(need.lattice) for other in shared)
        ]

    def _require_unchanged(self) -> None:
        """Read the label again after a scan: the file may have been written to meanwhile."""
        if self._label != self._source.label:
            self._label = None
            raise DataError(
                self._source.title,
                "it was changed while it was read",
                "Ask again when nobody writes to it",
            )

    def _selected(self, needs: Needs, choice: ChosenBy, rule: KeyRule) -> ShownKeys:
        """Let the engine select keys from counts of the rows that are chosen for the release."""
        self.queries += 1
        shown = select_in_engine(self._source, needs, rule, key=self._row_choice_key, choice=choice)
        self._require_unchanged()
        return shown

    def _is_shared(self, needs: Needs) -> bool:
        """Tell whether its cube serves other lattices, and other questions on them."""
        return needs.holds_on_other_lattices(self._source.unit)

    def _cached(self, needs: Needs, choice: ChosenBy) -> Cube | None:
        for cached in self._cubes:
            if cached.choice != choice:
                continue
            if cached.needs == needs:
                return cached.cube
            both_shared = self._is_shared(cached.needs) and self._is_shared(needs)
            if both_shared and cached.cube.serves(needs.lattice):
                return cached.cube.on(needs.lattice)
        return None


def _without_numbers(needs: Needs) -> Needs:
    """Return what is to be counted, and nothing of the answer; no ``cells`` that say nothing."""
    cells = None if needs.cells == needs.lattice else needs.cells
    return msgspec.structs.replace(needs, numbers=0, cells=cells)


@dataclass(repr=False, eq=False)
class ReleaseCounts:
    """The counts that one question may ask for.

    Every lattice is counted under the same choice of each person's rows: the privacy unit then
    holds for all counts of a release together.

    Attributes
    ----------
    cube : Cube
        On the lattice that the question named beforehand.
    recount : callable or None
        Counts the same rows on another lattice. None: what bounds a person holds on the lattice of
        the cube alone, and no other one is served.
    domain : Domain or None
        The public axes of the table.
    norm : StackedNorm or None
        What bounds a person's counts in several tables.
    """

    cube: Cube
    recount: Callable[[Lattice], Cube] | None
    domain: Domain | None = None
    norm: StackedNorm | None = None

    @property
    def lattice(self) -> Lattice:
        return self.cube.lattice

    def serves(self, lattice: Lattice) -> bool:
        return self.recount is not None or lattice == self.lattice

    def on(self, lattice: Lattice) -> Cube:
        if lattice == self.lattice:
            return self.cube
        if self.recount is None:
            raise InternalError("These counts are bounded on their own lattice alone.")
        return self.cube.on(lattice) if self.cube.serves(lattice) else self.recount(lattice)


@dataclass(repr=False, eq=False)
class EngineCounts:
    """Counts with an axis of keys, from which an engine selects: see ``SelectsKeys``.

    Attributes
    ----------
    lattice : Lattice
        What the question named beforehand.
    select : callable
        Lets the engine select keys by a rule.
    recount : callable
        Counts the same rows on a lattice: all keys, where a question asks for them.
    domain : Domain
        The public axes of the table.
    """

    lattice: Lattice
    select: Callable[[KeyRule], ShownKeys]
    recount: Callable[[Lattice], Cube]
    domain: Domain | None

    def serves(self, lattice: Lattice) -> bool:
        return lattice == self.lattice

    def on(self, lattice: Lattice) -> Cube:
        if not self.serves(lattice):
            raise InternalError("These counts are of keys, on the lattice of their question.")
        return self.recount(lattice)
