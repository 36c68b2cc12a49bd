"""Binary trees of noise: the nodes of the binary digits of t cover the first t steps.

Each node of the tree over the steps is released with noise of its own. ``TreeAggregator`` adds up
the nodes that cover the first t steps (Dwork, Naor, Pitassi, Rothblum, STOC 2010; Chan, Shi, Song
2011). ``EfficientTreeAggregator`` estimates each of them from all noise below it: X_0 = z and X_k =
z_k + (X_left + X_right) / 2. X_k / (2 - 2^-k) has the least variance, 1 / (2 - 2^-k), of all
unbiased combinations of the subtree (Honaker 2015, estimation from below). Given the noisy nodes
both are post-processing, so both cost the same: one participation touches at most
floor(log2(steps)) + 1 nodes.

The state before step t + 1 holds the nodes of t + 1, whose noise is drawn already. The order of
draws is: a new leaf, then the parents that it completes, from the bottom up (efficient); or one
value a step, for the node that replaces the completed ones (plain).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from operator import index
from typing import Generic, TypeVar

import numpy as np

from sfumato.basics import Array
from sfumato.errors import UsageError, explained, explained_methods
from sfumato.streaming.accounting import squared_tree_sensitivity
from sfumato.streaming.aggregator import Aggregator, State, check_steps
from sfumato.streaming.values import combine

V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


@explained_methods
class TreeState(State, Generic[V_co], frozen=True, eq=False):
    """The state of a tree of noise. Secret: it holds noise that will be used.

    Attributes
    ----------
    level_buffer : tuple of values
        Values of the nodes that cover the steps up to the current one, smallest first.
    level_buffer_idx : tuple of int
        Their levels in ascending order; 0 is a leaf.
    value_generator_state : object
    kind : str
        The aggregator to which it belongs.

    >>> from sfumato.streaming import EfficientTreeAggregator, TreeState, get_step_idx
    >>> state = EfficientTreeAggregator(lambda: 1.0).init_state()
    >>> isinstance(state, TreeState), state.level_buffer_idx, get_step_idx(state)
    (True, (0,), 0)
    """

    level_buffer: tuple[V_co, ...]
    level_buffer_idx: tuple[int, ...]
    value_generator_state: object
    kind: str = ""

    @property
    def step_index(self) -> int:
        """Index of the current step, from 0 on."""
        return _step_of(self.level_buffer_idx)

    def __repr__(self) -> str:
        return f"<TreeState of step {self.step_index}, {len(self.level_buffer)} nodes>"


@explained
def get_step_idx(state: State | Sequence[int]) -> int:
    """Return the index of the current step, from 0 on.

    Parameters
    ----------
    state : State, or sequence of int
        A state of any aggregator, or a tree's ``level_buffer_idx``.

    Returns
    -------
    int

    >>> get_step_idx((0, 2))
    4
    """
    return state.step_index if isinstance(state, State) else _step_of(state)


def _step_of(levels: Sequence[int]) -> int:
    try:
        plain = [index(level) for level in levels]
    except TypeError:
        plain = []
    if not plain or plain[0] < 0 or any(low >= high for low, high in pairwise(plain)):
        raise UsageError(
            "the step of a state",
            "it is neither a state nor the heights of its nodes, smallest first",
            "Give what init_state or get_cumsum_and_update returned",
        )
    return sum(1 << level for level in plain) - 1


@explained_methods
class TreeAggregator(Aggregator[V_co]):
    """Noise of a running total: one value for each binary digit 1 of the number of steps.

    Parameters
    ----------
    value_generator : ValueGenerator, or a function without arguments

    {gaussian_values}
    Sensitivity: L2 squared L = floor(log2(steps)) + 1 for one participation; for several,
    ``squared_tree_sensitivity``.
    Holds because: the totals are functions of the completed nodes, each with noise of its own; a
    step lies in one node a level.
    {float_noise}
    Source: Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011; Kairouz et al. 2021, app. B;
    Bun, Steinke 2016.

    >>> aggregator = TreeAggregator(lambda: 1)
    >>> state = aggregator.init_state()
    >>> found = []
    >>> for _ in range(8):
    ...     noise, state = aggregator.get_cumsum_and_update(state)
    ...     found.append(noise)
    >>> found
    [1, 1, 2, 1, 2, 2, 3, 1]
    """

    kind = "tree"

    def get_cumsum_and_update(self, state: object) -> tuple[V_co, TreeState[V_co]]:
        """Return the noise of the current total, and the state of the next step.

        Raises
        ------
        UsageError
            If the state belongs to another aggregator.
        """
        state = self._own(state)
        held = state.level_buffer
        levels = state.level_buffer_idx
        noise = self._read(held, levels)
        # Levels 0, 1, ..., done - 1 are held: the next leaf completes them, as adding 1 to a binary
        # number carries through its trailing ones.
        done = 0
        while done < len(levels) and levels[done] == done:
            done += 1
        value, after = self._node(held[:done], state.value_generator_state)
        return noise, TreeState((value, *held[done:]), (done, *levels[done:]), after, self.kind)

    def complete_state(self, noise: V, state: object) -> tuple[V | V_co, TreeState[V_co]]:
        """Complete the tree by empty steps, and start a new one.

        Without completion, a restart keeps one noisy node for every binary digit 1 of the number of
        steps. After completion it keeps the root only, for which the cost counts one more level:
        floor(log2(steps - 1)) + 2 nodes hold a step. If the number of steps is a power of two,
        nothing changes.

        Parameters
        ----------
        noise, state
            As ``get_cumsum_and_update`` returned them last.

        Returns
        -------
        noise, state
            The noise of the total, which is now that of one node, and the first state of the new
            tree.

        Source: Kairouz et al. 2021, app. D.
        """
        state = self._own(state)
        steps = state.step_index
        # After 2^k steps the tree is complete, and the noise of the total is that of its root.
        if steps & (steps - 1):
            root, after = self._root(state)
            return root, self._first(after)
        return noise, self._first(state.value_generator_state)

    def _own(self, state: object) -> TreeState[V_co]:
        if not isinstance(state, TreeState) or state.kind != self.kind:
            raise self._foreign()
        return state

    def _generator_state(self, state: object) -> object:
        return self._own(state).value_generator_state

    def variances(self, steps: int) -> Array:
        """Return the variance at each step for values of variance 1; see ``Aggregator``."""
        digits = np.arange(1, check_steps(steps) + 1)
        variances = np.zeros(steps)
        for level in range(int(steps).bit_length()):
            variances += (digits >> level & 1) * float(self.node_variance(level))
        return variances

    def squared_sensitivity(
        self, steps: int, *, participations: int = 1, separation: int = 1
    ) -> int:
        """Return the squared L2 norm by which one person moves the completed nodes.

        See ``sfumato.streaming.squared_tree_sensitivity``.
        """
        return squared_tree_sensitivity(steps, participations=participations, separation=separation)

    @staticmethod
    def node_variance(level: int) -> Fraction:
        """Return the variance of the estimate of a node of this level, for values of variance 1."""
        return Fraction(1)

    def _read(self, held: Sequence[V], levels: Sequence[int]) -> V:
        return combine((1,) * len(held), held)

    def _node(self, completed: Sequence[V_co], state: object) -> tuple[V_co, object]:
        """Return the value of a new node over the new leaf and the nodes that it completes.

        The completed nodes come smallest first.
        """
        return self.value_generator.next(state)

    def _root(self, state: TreeState[V_co]) -> tuple[V_co, object]:
        """Return the noise of the node over all steps, after completion."""
        return self.value_generator.next(state.value_generator_state)

    def _first(self, generator_state: object) -> TreeState[V_co]:
        value, after = self.value_generator.next(generator_state)
        return TreeState((value,), (0,), after, self.kind)

    def _whole(self, steps: int, draw: Callable[[int], Array]) -> Array:
        values = draw(check_steps(steps))
        heights = range(int(steps).bit_length())
        # Left children of level k end after 2^k steps, and then every 2^(k+1) steps.
        levels = [values[(1 << level) - 1 :: 2 << level] for level in heights]
        return _prefixes(steps, levels, [1.0] * len(levels))


@explained_methods
class EfficientTreeAggregator(TreeAggregator[V_co]):
    """The same guarantee with about half of the variance: each node is estimated from all below it.

    Parameters
    ----------
    value_generator : ValueGenerator, or a function without arguments

    Guarantee: that of ``TreeAggregator``; the variance of the noise at t is the sum over the digits
    k of t of 1 / (2 - 2^-k).
    Sensitivity: L2 squared floor(log2(steps)) + 1 for one participation; for several,
    ``squared_tree_sensitivity``.
    Holds because: the noise is a linear combination of the noisy nodes whose data parts add up to
    the running total.
    {float_noise}
    Source: Honaker 2015, *Efficient Use of Differentially Private Binary Trees*; Kairouz et al.
    2021.

    >>> from sfumato.streaming import GaussianNoiseGenerator
    >>> aggregator = EfficientTreeAggregator(GaussianNoiseGenerator(noise_std=1.0))
    >>> state = aggregator.init_state()
    >>> for step in range(3):
    ...     assert step == get_step_idx(state)
    ...     noise, state = aggregator.get_cumsum_and_update(state)
    """

    kind = "efficient tree"

    @staticmethod
    def node_variance(level: int) -> Fraction:
        """Return 1 / (2 - 2^-level)."""
        return Fraction(1 << level, (2 << level) - 1)

    def _read(self, held: Sequence[V], levels: Sequence[int]) -> V:
        return combine([_WEIGHTS[level] for level in levels], held)

    def _node(self, completed: Sequence[V_co], state: object) -> tuple[V_co, object]:
        below, state = self.value_generator.next(state)
        for left in completed:
            own, state = self.value_generator.next(state)
            below = combine((1, 0.5, 0.5), (own, left, below))
        return below, state

    def _root(self, state: TreeState[V_co]) -> tuple[V_co, object]:
        """Climb from the smallest node to the root.

        An empty sibling certainly holds nothing, so that it adds no variance. The node's own value,
        of variance 1, and its children's total, of variance v, get the weights v / (1 + v) and 1 /
        (1 + v).
        """
        nodes = [
            (level, combine((_WEIGHTS[level],), (value,)))
            for level, value in zip(state.level_buffer_idx, state.level_buffer, strict=True)
        ]
        level, total = nodes.pop(0)
        variance = _WEIGHTS[level]
        after = state.value_generator_state
        while nodes:
            if nodes[0][0] == level:
                _, sibling = nodes.pop(0)
                total = combine((1, 1), (total, sibling))
                variance += _WEIGHTS[level]
            own, after = self.value_generator.next(after)
            # Weights in inverse proportion to the variances give an unbiased sum of the least
            # variance.
            total = combine((variance / (1 + variance), 1 / (1 + variance)), (own, total))
            variance /= 1 + variance
            level += 1
        return total, after

    def _whole(self, steps: int, draw: Callable[[int], Array]) -> Array:
        leaves = np.arange(check_steps(steps))
        # Before leaf i, i leaves were drawn, and i parents less one for each digit 1 of i.
        at = 2 * leaves - np.bitwise_count(leaves)
        values = draw(int(2 * steps - int(steps).bit_count()))
        nodes = values[at]
        left = []
        for level in range(int(steps).bit_length()):
            if level:
                own = values[at[(1 << level) - 1 :: 1 << level] + level]
                nodes = own + 0.5 * (nodes[0 : 2 * len(own) : 2] + nodes[1 : 2 * len(own) : 2])
            left.append(nodes[0::2])
        return _prefixes(steps, left, _WEIGHTS)


_WEIGHTS = tuple(float(EfficientTreeAggregator.node_variance(level)) for level in range(64))


def _prefixes(steps: int, left: Sequence[Array], weights: Sequence[float]) -> Array:
    """Return the noise of every prefix, from the left children of each level."""
    noise = np.zeros(steps + 1)
    # The prefix of t steps is that of t without its lowest digit 1, plus the node of this digit.
    for level in reversed(range(len(left))):
        target = noise[1 << level :: 2 << level]
        before = noise[0 :: 2 << level][: len(target)]
        target[...] = before + weights[level] * left[level][: len(target)]
    return noise[1:]
