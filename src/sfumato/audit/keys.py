"""The exact audit of keys that are not known beforehand: epsilon at the stated delta.

Each key that occurs draws noise of its own, which decides whether it is shown. Here every value of
that noise is tried under a script, by the code that publishes, so that the probability of each
output is a sum of known ones. An output that one data set can have and its neighbour cannot is then
no fault by itself: delta allows for it. The figure is the least epsilon with

    P(outputs | one) <= e^epsilon P(outputs | other) + delta    for all sets of outputs.

Keys are drawn independently, so each is enumerated alone, beside others that are not shown, and
their probabilities are multiplied. Where the cells of a shown key are counted with noise of their
own, that noise is enumerated too.

Source: Dwork, Roth 2014, section 3.5 (the divergence that defines delta).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np

from sfumato.audit.likelihoods import Loss, largest, least_epsilon
from sfumato.audit.runs import (
    Draws,
    Mechanism,
    NotAdditive,
    Pair,
    Rows,
    Scripted,
    key_masses,
    masses,
    run_script,
    support,
    with_draw,
)
from sfumato.basics import Array
from sfumato.mechanisms import Law
from sfumato.privacy import ApproxDP, CentralMeasure

# Noise is cut off where its probability is below e^-40.
REACH = 40.0


@dataclass(frozen=True)
class _Output:
    """What is published of one key.

    Attributes
    ----------
    count : int or None
        The noisy count; None: the key is not shown, or what is published are noisy cells.
    laws, cells : tuples
        The cells of a key that is shown, without their noise, and the laws of that noise.
    """

    count: int | None = None
    laws: tuple[Law, ...] = ()
    cells: Draws = ()

    @property
    def visible(self) -> tuple[int | None, bool]:
        """What of it does not depend on the noise of cells."""
        return self.count, bool(self.laws)


NOT_SHOWN = _Output()


@dataclass(frozen=True)
class KeySelection:
    """An exact audit of a selection of keys.

    Attributes
    ----------
    width : int
        How many numbers a mechanism publishes for each key that could occur: whether it is shown,
        and its counts.
    """

    width: int

    def __call__(
        self,
        mechanism: Mechanism,
        pairs: Sequence[Pair],
        claim: CentralMeasure,
        alphas: Sequence[float],
    ) -> Loss:
        """The largest epsilon over pairs of data sets, at the delta of the claim."""
        assert isinstance(claim, ApproxDP)
        runner = _Runner(mechanism, self.width)
        losses = []
        for pair in pairs:
            here, there = (runner.outputs_by_key(rows) for rows in pair)
            losses.append((_epsilon_at(*_joint(here, there), float(claim.delta)), pair))
        loss = largest(losses)
        return loss if runner.consistent else Loss(math.inf, loss.pair)


Outputs: TypeAlias = dict[_Output, float]


class _Runner:
    """Runs a mechanism under scripts.

    Attributes
    ----------
    consistent : bool
        Whether equal numbers were published with equal bytes, whatever the data set was.
    """

    def __init__(self, mechanism: Mechanism, width: int) -> None:
        self.mechanism = mechanism
        self.width = width
        self.consistent = True
        self._bytes: dict[Draws, bytes] = {}
        self.outputs_by_key = cache(self._enumerated)

    def run(self, rows: Rows, script: Draws) -> tuple[Draws, Scripted]:
        """Return the published numbers, and what the mechanism asked for."""
        output, noise = run_script(self.mechanism, rows, script)
        # Equal numbers must come in equal bytes: otherwise something else that is published tells
        # more.
        if self._bytes.setdefault(output.numbers, output.everything) != output.everything:
            self.consistent = False
        return output.numbers, noise

    def _enumerated(self, rows: Rows) -> dict[int, Outputs]:
        """For each key that may be shown, by its number: the probability of each of its outputs."""
        hidden = self._lowest(rows)
        # Check on some draws that what is published of one key does not depend on another's.
        base, noise = self.run(rows, hidden)
        values = [_law(law)[0] for law in noise.laws]
        for share in (0.5, 0.6, 0.9, 1.0):
            script = tuple(int(counts[int(share * (len(counts) - 1))]) for counts in values)
            together, _ = self.run(rows, script)
            expected = np.array(base)
            for i, value in enumerate(script):
                alone, _ = self.run(rows, with_draw(hidden, i, value))
                expected += np.array(alone) - np.array(base)
            if together != tuple(expected.tolist()):
                raise NotAdditive("what is published of one key depends on the noise of another")
        outputs = (self._outputs(rows, hidden, index) for index in range(len(hidden)))
        return dict(of_key for of_key in outputs if of_key is not None)

    def _lowest(self, rows: Rows) -> Draws:
        """The script with the least value of every draw for a key: hardly any key is shown."""
        script: Draws = ()
        while True:
            _, noise = self.run(rows, script)
            if len(noise.values) <= len(script):
                return script[: len(noise.values)]
            values, _ = _law(noise.laws[len(script)])
            script += (int(values[0]),)

    def _outputs(self, rows: Rows, hidden: Draws, index: int) -> tuple[int, Outputs] | None:
        """Return the key that a draw decides about, and its outputs. None if it is never shown."""
        _, noise = self.run(rows, hidden)
        values, probabilities = _law(noise.laws[index])
        runs = [self.run(rows, with_draw(hidden, index, value)) for value in values.tolist()]
        table = np.array([numbers for numbers, _ in runs])
        varied = np.flatnonzero((table != table[0]).any(axis=0))
        names = set((varied // self.width).tolist())
        if not names:
            return None
        if len(names) > 1:
            raise NotAdditive("one draw decides about several keys")
        name = names.pop()
        outputs: defaultdict[_Output, float] = defaultdict(float)
        for value, mass in zip(values.tolist(), probabilities.tolist(), strict=True):
            outputs[self._of_key(rows, with_draw(hidden, index, value), name)] += mass
        return name, dict(outputs)

    def _of_key(self, rows: Rows, script: Draws, name: int) -> _Output:
        numbers, noise = self.run(rows, script)
        part = slice(name * self.width + 1, (name + 1) * self.width)
        if not numbers[part.start - 1]:
            return NOT_SHOWN
        drawn = noise.laws[len(script) :]
        if not drawn:
            return _Output(numbers[part.start])
        laws = tuple(law for law in drawn if isinstance(law, Law))
        cells = numbers[part]
        moved, _ = self.run(rows, script + tuple(range(1, len(drawn) + 1)))
        expected = tuple(cell + i for i, cell in enumerate(cells, 1))
        if len(laws) != len(cells) or moved[part] != expected:
            raise NotAdditive("the cells of a key do not move one for one with their draws")
        return _Output(None, laws, cells)


def _joint(here: dict[int, Outputs], there: dict[int, Outputs]) -> tuple[Array, Array]:
    """Probabilities of all outputs under both data sets: float64 ndarrays of shape (outputs,).

    A key that is as likely to be shown as each of its counts under both tells nothing.
    """
    of_one = np.ones(1)
    of_other = np.ones(1)
    for name in sorted(here.keys() | there.keys()):
        first = here.get(name, {NOT_SHOWN: 1.0})
        second = there.get(name, {NOT_SHOWN: 1.0})
        if first == second:
            continue
        p, q = (np.concatenate(columns) for columns in zip(*_of_both(first, second), strict=True))
        of_one = np.outer(of_one, p).reshape(-1)
        of_other = np.outer(of_other, q).reshape(-1)
    return of_one, of_other


def _of_both(first: Outputs, second: Outputs) -> Iterator[tuple[Array, Array]]:
    """Probabilities of the outputs of one key under both data sets, with the noise of its cells."""
    seconds = {output.visible: (output, mass) for output, mass in second.items()}
    for output, mass in first.items():
        other, mass_of_other = seconds.pop(output.visible, (output, 0.0))
        p = np.array([mass])
        q = np.array([mass_of_other])
        for law, cell, cell_of_other in zip(output.laws, output.cells, other.cells, strict=True):
            if cell == cell_of_other:
                continue
            values = support(law, REACH)
            p = np.outer(p, masses(law, values)).reshape(-1)
            q = np.outer(q, masses(law, values + (cell - cell_of_other))).reshape(-1)
        yield p, q
    for _, mass in seconds.values():
        yield np.zeros(1), np.array([mass])


def _epsilon_at(p: Array, q: Array, delta: float) -> float:
    """Return the least epsilon at which so much delta is spent, or 0."""

    def spent(epsilon: float) -> float:
        return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())

    return least_epsilon(spent, delta, 64.0)


def _law(law: object) -> tuple[Array, Array]:
    """Return the values of the noise on a key, rising, and their probabilities."""
    if isinstance(law, Law):
        values = support(law, REACH)
        return values, masses(law, values)
    return key_masses(law)
