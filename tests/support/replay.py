"""Two runs whose mechanisms say the same.

What still differs between them did not pass through noise.

The first run records what every mechanism puts out, in order. The second run gets the same outputs
again, whatever its table holds. A count or a sum is replayed as a noisy number, a selection as its
outcome: an edge, a label, yes or no. So everything that a reader can see must be equal in both
runs, or it depends on the data in a way that nobody paid for.

The mechanisms of the second run still run, and what they draw is thrown away: what they warn of,
log or raise is part of the test.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from sfumato.data import key_selection
from sfumato.mechanisms import noise, thresholds
from sfumato.mechanisms.joint_total import JointTotalLaw
from sfumato.mechanisms.jointexp import JointLaw
from sfumato.mechanisms.selection import RankLaw
from sfumato.mechanisms.thresholds import KeyRule
from sfumato.publishing import counting
from sfumato.questions.counters.methods import Segments
from sfumato.questions.counters.toeplitz import BufferCounter, ToeplitzCounter
from sfumato.questions.counters.tree import ElderTree
from sfumato.questions.histogram import keys

MACHINES = (ElderTree, ToeplitzCounter, BufferCounter, Segments)
FUNCTIONS = (noise.add_noise, noise.exceeds, thresholds.released)
ROOMS = (
    "mechanisms",
    "questions.aggregates",
    "questions.clustering",
    "questions.histogram",
    "questions.partition",
    "questions.persons",
    "questions.quantiles",
    "questions.tables",
    "streaming",
)


class DivergedError(AssertionError):
    """The second run asked its mechanisms for something else.

    How they are called depends on the data.
    """


@dataclass(frozen=True)
class Call:
    """One use of a mechanism: what is public about it, and what it put out."""

    mechanism: str
    public: str
    output: Any


class Tape:
    """The outputs of all mechanisms of a run, in order.

    ``asked`` says what the present run asked for.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.asked: list[str] = []
        self.fault: DivergedError | None = None
        self._next: int | None = None
        self.inside = False
        self.heard: Callable[[], None] = lambda: None

    def rewind(self) -> None:
        """Play from the beginning from now on, and record no more."""
        self._next, self.asked = 0, []

    def ahead(self) -> Any:
        """The output that the next call is given; None while outputs are recorded."""
        if self._next is None or self._next >= len(self.calls):
            return None
        return self.calls[self._next].output

    def diverged(self, how: str) -> DivergedError:
        """Note that the runs parted: the library may not let this error through."""
        self.fault = self.fault or DivergedError(how)
        return self.fault

    def through(
        self,
        mechanism: str,
        public: object,
        run: Callable[[], Any],
        out: Callable[[Any], Any],
        back: Callable[[Any, Any], Any],
    ) -> Any:
        """Pass one call of a mechanism.

        Parameters
        ----------
        mechanism : str
        public : object
            Parameters that readers may know. They are compared, as text.
        run : callable
            The mechanism itself.
        out : callable
            From what the mechanism returned to its outcome, which holds nothing of the table but
            what is published.
        back : callable
            From what the mechanism returned in this run, and the outcome of the first, to what the
            caller gets.
        """
        if self.inside:  # a mechanism that uses another one: the outer one is what is published
            return run()
        self.heard()
        self.asked.append(f"{mechanism} {public!r}")
        self.inside = True
        try:
            returned = run()
        finally:
            self.inside = False
        if self._next is None:
            self.calls.append(Call(mechanism, repr(public), out(returned)))
            return returned
        if self._next >= len(self.calls):
            raise self.diverged(
                f"the second run asks {mechanism} once more than the first: {public}"
            )
        call = self.calls[self._next]
        self._next += 1
        if (call.mechanism, call.public) != (mechanism, repr(public)):
            raise self.diverged(
                f"the first run asked {call.mechanism} for {call.public}, "
                f"the second asks {mechanism} for {public}"
            )
        return back(returned, call.output)


@contextmanager
def through(tape: Tape) -> Iterator[None]:
    """Let every mechanism of the library pass through a tape."""
    # A module that were first imported below would keep a double for good.
    importlib.import_module("sfumato.extending")
    for room in ROOMS:
        for found in pkgutil.iter_modules(importlib.import_module(f"sfumato.{room}").__path__):
            importlib.import_module(f"sfumato.{room}.{found.name}")
    with pytest.MonkeyPatch.context() as patch:
        for original, double in zip(
            FUNCTIONS,
            (_noisy(tape, noise.add_noise), _noisy(tape, noise.exceeds), _released(tape, patch)),
            strict=True,
        ):
            for module in [
                one for name, one in sys.modules.items() if name.split(".")[0] == sfumato.__name__
            ]:
                for name in [name for name, value in vars(module).items() if value is original]:
                    patch.setattr(module, name, double)
        _selections(tape, patch)
        _keys_in_engines(tape, patch)
        for machine in MACHINES:
            patch.setattr(machine, "step", _stepped(tape, machine))
        yield


def _noisy(tape: Tape, original: Any) -> Any:
    def double(counts: np.ndarray, law: Any, *rest: Any) -> np.ndarray:
        public = (law, np.shape(counts), *(one.tolist() for one in rest[:-1]))
        found: np.ndarray = tape.through(
            original.__name__,
            public,
            lambda: original(counts, law, *rest),
            np.copy,
            lambda _, said: said.copy(),
        )
        return found

    return double


def _released(tape: Tape, patch: pytest.MonkeyPatch) -> Any:
    """The double of the selection of keys.

    The outcome is the keys by name, since their places depend on keys that nobody sees.
    """
    original, shown = thresholds.released, keys.select_keys
    held: list[Any] = []

    def named(cube: Any, *rest: Any) -> Any:
        held.append(cube.keys[next(iter(cube.lattice.keyed.values()))])
        try:
            return shown(cube, *rest)
        finally:
            held.pop()

    def out(returned: Any) -> dict[Any, int]:
        places, values = returned
        return dict(zip(held[-1].take(places), values.tolist(), strict=True))

    def back(_: Any, said: dict[Any, int]) -> Any:
        everyone = held[-1].to_pylist()
        places = np.array([place for place, key in enumerate(everyone) if key in said], np.int64)
        if len(places) < len(said):
            raise tape.diverged(
                "a key that was shown in the first run is in no row of the second: "
                "choose other tables"
            )
        return places, np.array([said[everyone[place]] for place in places], np.int64)

    def double(counts: np.ndarray, law: Any, bits: Any) -> Any:
        if not held:  # by an engine, as a part of ``select``
            return original(counts, law, bits)
        return tape.through("released", law, lambda: original(counts, law, bits), out, back)

    patch.setattr(keys, "select_keys", named)
    return double


def _keys_in_engines(tape: Tape, patch: pytest.MonkeyPatch) -> None:
    """The double of the selection of keys by an engine.

    The engine may apply the rule to any parts of the groups, so the selection is one mechanism as a
    whole. In the second run every part is decided, and then the keys of the first run are shown.
    """
    original, decide = key_selection.select_in_engine, KeyRule.shown
    held: list[dict[Any, int] | None] = []

    def forced(rule: KeyRule, batch: Any) -> Any:
        shown = decide(rule, batch)
        if not held or held[-1] is None:
            return shown
        said = held[-1]
        places = [i for i, key in enumerate(batch["key"].to_pylist()) if key in said]
        kept = batch.take(pa.array(places, pa.int64())).drop_columns(["rows_of_key"])
        values = [said[key] for key in kept["key"].to_pylist()]
        return kept.append_column("noisy_rows", pa.array(values, pa.int64()))

    def out(returned: Any) -> dict[Any, int]:
        (place,) = (i for i, axis in enumerate(returned.lattice.axes) if axis.name == held_axis[-1])
        labels = returned.lattice.axes[place].labels
        return dict(zip(labels, returned.values.tolist(), strict=True))

    def back(returned: Any, said: dict[Any, int]) -> Any:
        if out(returned) != said:
            raise tape.diverged("a key of the first run is in no row of the second")
        return returned

    held_axis: list[str] = []

    def double(source: Any, needs: Any, rule: KeyRule, **more: Any) -> Any:
        held_axis.append(*needs.lattice.keyed.values())
        held.append(tape.ahead())
        try:
            run = lambda: original(source, needs, rule, **more)  # noqa: E731
            return tape.through("select", (rule.law, needs), run, out, back)
        finally:
            held.pop()
            held_axis.pop()

    patch.setattr(KeyRule, "shown", forced)
    patch.setattr(counting, "select_in_engine", double)


def _selections(tape: Tape, patch: pytest.MonkeyPatch) -> None:
    """Doubles of the selections of edges.

    A law keeps its public parameters only in part, so they are noted when it is made.
    """
    asked: dict[int, object] = {}

    def remembered(law: Any) -> Any:
        original = law.__init__

        def double(self: Any, ranks: Any, *rest: Any, **more: Any) -> None:
            asked[id(self)] = (
                int(ranks.first[0]),
                int(ranks.first[-1]),
                *rest,
                sorted(more.items()),
            )
            original(self, ranks, *rest, **more)

        return double

    def drawn(law: Any, draw: str) -> Any:
        original = getattr(law, draw)

        def back(returned: Any, said: np.ndarray) -> Any:
            return int(said) if isinstance(returned, int) else said.copy()

        def double(self: Any, bits: Any) -> Any:
            return tape.through(
                f"{law.__name__}.{draw}",
                asked[id(self)],
                lambda: original(self, bits),
                np.array,
                back,
            )

        return double

    laws = ((RankLaw, ("draw", "flip")), (JointLaw, ("draw",)))
    for law, draws in (*laws, (JointTotalLaw, ("draw",))):
        patch.setattr(law, "__init__", remembered(law))
        for draw in draws:
            patch.setattr(law, draw, drawn(law, draw))


def _stepped(tape: Tape, machine: Any) -> Any:
    original = machine.step

    def double(self: Any, state: Any, increment: Any, bits: Any) -> Any:
        run = lambda: original(self, state, increment, bits)  # noqa: E731
        return tape.through(
            "step",
            self,
            run,
            lambda returned: returned[1],
            lambda returned, said: (returned[0], said),
        )

    return double
