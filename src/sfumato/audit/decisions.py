"""The exact audit of mechanisms that decide: by tests with noise, or by selections of edges.

Some randomness is never published, but decides what is. Noise in a test says whether a box is
split. A selection says where it is cut. Here all decisions that a mechanism can make are
enumerated, under scripts as in ``likelihoods``. With the decisions fixed, the numbers that are
published move one for one with their own draws, and so

    P(output | rows) = the probability of the decisions
                       times that of the draws that lead to the published numbers.

*Which draws decide?* A draw is published if adding to it adds as much to the next published number
and changes no earlier one. Any other draw is a test.

*How likely is an answer?* Nothing is derived from how the code compares. The answer to a test is
searched for: the least draw with which these rows still give the same output, by bisection, and
its probability under the law that was recorded. A selection tells its script how likely its
outcome is, by the weights that it draws by.

*Was everything found?* If all outcomes were tried, the probabilities of all decisions add up to 1.
A test that is not monotone in its noise would break that sum, and is refused. So is a mechanism
whose output does not show how it decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations_with_replacement, product
from typing import Literal, TypeAlias

import numpy as np

from sfumato.audit.likelihoods import FAR, Loss, largest, solved
from sfumato.audit.runs import (
    Draws,
    Mechanism,
    NotAdditive,
    Pair,
    Rows,
    log_at_least,
    log_mass,
    log_sum,
    renyi,
    run_script,
    support,
    with_draw,
)
from sfumato.basics import least_whole
from sfumato.mechanisms import Law, Selection
from sfumato.privacy import ZCDP, CentralMeasure

Kind: TypeAlias = Literal["published", "test", "choice"]

# How far the probabilities of all decisions may be from 1.
MISSING = 1e-9


@dataclass(frozen=True)
class Decisions:
    """An exact audit by enumeration of decisions.

    Attributes
    ----------
    starts : tuple of tuples of int
        The first draws, where published numbers decide what comes next. Each of these is tried.
    offsets : tuple of int
        Of selections with many edges only these are tried, counted from the lowest. Empty: all.
    """

    starts: tuple[Draws, ...] = ((),)
    offsets: tuple[int, ...] = ()

    def __call__(
        self,
        mechanism: Mechanism,
        pairs: Sequence[Pair],
        claim: CentralMeasure,
        alphas: Sequence[float],
    ) -> Loss:
        """The largest loss over pairs of data sets, in the unit of the claim.

        Raises
        ------
        NotAdditive
            If the enumeration cannot judge the mechanism.
        """
        enumeration = _Enumeration(mechanism, self.offsets)
        losses = []
        for pair, start in product(pairs, self.starts):
            ways = enumeration.compared(pair, start)
            if ways is None:
                return Loss(math.inf, pair)
            if isinstance(claim, ZCDP):
                loss = max(_divergence(ways, alpha) / alpha for alpha in alphas)
            else:
                loss = max(way.log_ratio for way in ways)
            losses.append((loss, pair))
        return largest(losses)


@dataclass(frozen=True)
class _Way:
    """One way to decide: a script, and what each of its integers is for."""

    script: Draws
    kinds: tuple[Kind, ...]

    def indices(self, kind: Kind) -> list[int]:
        """Return which integers of the script are of this kind."""
        return [i for i, own in enumerate(self.kinds) if own == kind]


@dataclass(frozen=True)
class _Compared:
    """The same decisions and published numbers under two data sets.

    Attributes
    ----------
    log_one, log_other : float
        ln of the probability of the decisions.
    draws : list of (law, draw, draw of the other)
        What leads to the published numbers.
    """

    log_one: float
    log_other: float
    draws: list[tuple[Law, int, int]]

    @property
    def log_ratio(self) -> float:
        """ln of the ratio of the probabilities of this output."""
        of_draws = (log_mass(law, drawn) - log_mass(law, other) for law, drawn, other in self.draws)
        return self.log_one - self.log_other + math.fsum(of_draws)

    def term(self, alpha: float) -> float:
        """ln of what these decisions add to the sum of p^alpha q^(1 - alpha) over all outputs."""
        shifts = ((law, abs(drawn - other)) for law, drawn, other in self.draws if drawn != other)
        of_draws = math.fsum(renyi(law, shift, alpha) for law, shift in shifts)
        of_decisions = alpha * self.log_one + (1 - alpha) * self.log_other
        return of_decisions + (alpha - 1) * of_draws


def _divergence(ways: Sequence[_Compared], alpha: float) -> float:
    return log_sum(np.array([way.term(alpha) for way in ways])) / (alpha - 1)


class _Enumeration:
    """Runs a mechanism under scripts, keeps the outcomes, and finds its decisions."""

    def __init__(self, mechanism: Mechanism, offsets: Draws) -> None:
        self.offsets = offsets
        self.run = cache(partial(run_script, mechanism))
        self._ways = cache(self._all_ways)
        self._log_answer = cache(self._searched_answer)

    def compared(self, pair: Pair, start: Draws) -> list[_Compared] | None:
        """Every way in which one data set decides, beside the other's way to the same output.

        None if there is none for some output.
        """
        rows, other = pair
        compared = []
        for way in self._ways(rows, start):
            target, noise = self.run(rows, way.script)
            script = solved(self.run, other, way.script, way.indices("published"), target)
            if script is None:
                return None
            draws = []
            for i in way.indices("published"):
                law = noise.laws[i]
                assert isinstance(law, Law)
                draws.append((law, way.script[i], script[i]))
            log_one = self._log_decisions(rows, way, way.script)
            compared.append(_Compared(log_one, self._log_decisions(other, way, script), draws))
        self._check([way.log_one for way in compared])
        self._check([way.log_other for way in compared])
        return compared

    def _all_ways(self, rows: Rows, start: Draws) -> list[_Way]:
        ways = list(self._walk(rows, start, ()))
        # Each output must have one way alone: otherwise its probability would be a sum over
        # several.
        if len({self.run(rows, way.script)[0].everything for way in ways}) < len(ways):
            raise NotAdditive("two ways to decide lead to the same output")
        return ways

    def _check(self, logs: list[float]) -> None:
        mass = math.fsum(map(math.exp, logs))
        # If only some outcomes were tried, the sum may fall short of 1, but never exceed it.
        if mass > 1 + MISSING or (not self.offsets and mass < 1 - MISSING):
            raise NotAdditive(f"the decisions that were found have probability {mass:.6g} together")

    def _walk(self, rows: Rows, script: Draws, kinds: tuple[Kind, ...]) -> Iterator[_Way]:
        """Yield all ways to decide that begin with a script, of which some integers are known."""
        output, noise = self.run(rows, script)
        values = tuple(noise.values)
        for i in range(len(kinds), len(values)):
            law = noise.laws[i]
            if isinstance(law, Selection):
                choice: Kind = "choice"
                chosen = (*kinds, *(choice,) * law.size)
                for outcome in self._outcomes(law):
                    yield from self._walk(rows, values[:i] + outcome, chosen)
                return
            if not self._is_published(rows, values, i, kinds.count("published")):
                # A test has two answers: noise far beyond all counts on either side gives both of
                # them.
                for answer in (-_reach(law), _reach(law)):
                    yield from self._walk(rows, (*values[:i], answer), (*kinds, "test"))
                return
            kinds = (*kinds, "published")
        if len(output.numbers) != kinds.count("published"):
            raise NotAdditive(
                f"{len(output.numbers)} numbers do not follow their draws one for one"
            )
        yield _Way(values, kinds)

    def _outcomes(self, selection: Selection) -> list[Draws]:
        top = selection.edges - (selection.size if selection.distinct else 1)
        tried = range(top + 1)
        # A selection with more outcomes is tried on some of them only.
        if math.comb(top + selection.size, selection.size) <= 400:
            return list(combinations_with_replacement(tried, selection.size))
        if not self.offsets:
            raise NotAdditive(f"a selection among {selection.edges} edges has too many outcomes")
        offsets = [offset for offset in self.offsets if offset <= top]
        return list(combinations_with_replacement(offsets, selection.size))

    def _is_published(self, rows: Rows, values: Draws, index: int, number: int) -> bool:
        """Whether a draw adds to this number as much as is added to it, and changes none before."""
        output, _ = self.run(rows, values)
        moved, _ = self.run(rows, with_draw(values, index, values[index] + FAR))
        before = output.numbers[:number]
        after = (x + FAR for x in output.numbers[number : number + 1])
        are_moved = moved.numbers[: number + 1] == (*before, *after)
        return are_moved and len(moved.numbers) > number

    def _log_decisions(self, rows: Rows, way: _Way, script: Draws) -> float:
        """Return ln of the probability that these rows decide so, given the published numbers."""
        _, noise = self.run(rows, script)
        tests = (self._log_answer(rows, script, i) for i in way.indices("test"))
        return noise.log_of_choices + math.fsum(tests)

    def _searched_answer(self, rows: Rows, script: Draws, index: int) -> float:
        """ln of the probability of an answer: of all draws with which the output is the same."""
        target, noise = self.run(rows, script)
        law = noise.laws[index]
        assert isinstance(law, Law)

        def is_same(draw: int) -> bool:
            return self.run(rows, with_draw(script, index, draw))[0].everything == target.everything

        answer = script[index]
        if is_same(-answer):
            # Whatever was drawn, nothing of it shows.
            return 0.0
        sign = 1 if answer > 0 else -1
        least = least_whole(lambda size: is_same(sign * size), -abs(answer), abs(answer))
        # Both laws are symmetric: P(Z <= -k) = P(Z >= k).
        return log_at_least(law, least)


def _reach(law: object) -> int:
    """Return a draw so large that it decides a test, whatever the small data are."""
    if not isinstance(law, Law):
        raise NotAdditive("a draw decides whose law is not one of noise on counts")
    return 4 * int(support(law)[-1])
