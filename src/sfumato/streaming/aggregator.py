"""What all aggregators of noise share: states that are passed on, variances, and their cost."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import ClassVar, Generic, TypeVar

import numpy as np

from sfumato.answers import Axes, drawn
from sfumato.basics import RHO_UNITS, Array, Exactly, ExplainedStruct, positive, units_up, whole
from sfumato.errors import UsageError, explained, explained_methods
from sfumato.privacy import ZCDP, fill_docstring
from sfumato.streaming.generators import (
    GaussianNoiseGenerator,
    NoiseState,
    ValueGenerator,
    as_generator,
    check_deviation,
)

V_co = TypeVar("V_co", covariant=True)


@explained_methods
class State(ExplainedStruct, frozen=True, eq=False):
    """The state of a stream of noise. Secret: it holds noise that will be used."""

    @property
    def step_index(self) -> int:
        """Index of the current step, from 0 on."""
        raise NotImplementedError


@explained_methods
class Aggregator(abc.ABC, Generic[V_co]):
    """Noise for running totals: at step t, a fixed linear combination of independent values.

    Parameters
    ----------
    value_generator : ValueGenerator, or a function without arguments
        Generates independent values: scalars, arrays, or nested lists, tuples and dicts of arrays.
        Only ``+`` and ``*`` are used, so arrays of torch and jax pass through untouched.

    >>> from sfumato.streaming import Aggregator, EfficientTreeAggregator
    >>> aggregator = EfficientTreeAggregator(lambda: 1.0)
    >>> isinstance(aggregator, Aggregator)
    True
    >>> noise, state = aggregator.get_cumsum_and_update(aggregator.init_state())
    >>> noise
    1.0
    """

    kind: str
    """Written into every state, so that no other aggregator goes on from it."""

    # Sentences that the docstrings of several aggregators share, as ``{gaussian_values}`` and
    # ``{float_noise}``.
    gaussian_values: ClassVar[str] = (
        "Guarantee: with Gaussian values of standard deviation sigma times the clip, rho-zCDP, "
        "rho = L / (2 sigma^2), for one person added or removed, when the noise is added to sums "
        "of contributions clipped in L2."
    )
    float_noise: ClassVar[str] = (
        "Not covered: the noise is a float that is added to floats; its low-order bits may tell "
        "sums apart (Mironov 2012)."
    )

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        fill_docstring(cls)

    def __init__(self, value_generator: ValueGenerator[V_co] | Callable[[], V_co]) -> None:
        self.value_generator = as_generator(value_generator)

    def init_state(self) -> State:
        """Return the state before the first step; its noise is drawn already."""
        return self._first(self.value_generator.initialize())

    def reset_state(self, state: object) -> State:
        """Return the state before the first step of a new stream.

        Its values continue where those of the old one ended.

        Raises
        ------
        UsageError
            If the state belongs to another aggregator.
        """
        return self._first(self._generator_state(state))

    @abc.abstractmethod
    def get_cumsum_and_update(self, state: object) -> tuple[V_co, State]:
        """Return the noise of the current step and the state of the next one.

        The same state gives the same noise.
        """

    @abc.abstractmethod
    def variances(self, steps: int) -> Array:
        """Return the variance of the noise at each step, for values of variance 1.

        Returns
        -------
        float64 ndarray of shape (steps,)
        """

    @abc.abstractmethod
    def squared_sensitivity(
        self, steps: int, *, participations: int = 1, separation: int = 1
    ) -> int | float:
        """Return the squared L2 norm by which one person moves what is released.

        Parameters
        ----------
        steps : int
            The number of steps that are released.
        participations : int
            The largest number of steps in which one person takes part, each time with a
            contribution of norm at most 1.
        separation : int
            The least distance of any two of these; 0: all may be one step.
        """

    def cost(
        self, *, noise_multiplier: float, steps: int, participations: int = 1, separation: int = 1
    ) -> ZCDP:
        """Return the privacy loss of ``steps`` steps with Gaussian values, under add-remove.

        Their standard deviation is noise_multiplier times the clipping norm. The loss is rho =
        squared sensitivity / (2 noise_multiplier^2), rounded up. It does not cover what the
        low-order bits of floating-point sums may tell.

        >>> from sfumato.streaming import TreeAggregator
        >>> str(TreeAggregator(lambda: 0.0).cost(noise_multiplier=2, steps=1600))
        'rho = 1.375'
        """
        sigma = check_deviation(noise_multiplier, "noise_multiplier")
        if sigma == 0:
            raise UsageError(
                "the cost of noise_multiplier = 0",
                "without noise there is no guarantee",
                "Give a positive noise_multiplier",
            )
        square = self.squared_sensitivity(
            steps, participations=participations, separation=separation
        )
        # Exact, and rounded up to whole units: a charge is never below what is spent.
        rho = Fraction(square) / (2 * Fraction(sigma) ** 2)
        return ZCDP(Fraction(units_up(rho, RHO_UNITS), RHO_UNITS))

    def deviations(
        self, steps: int, *, rho: Exactly, participations: int = 1, separation: int = 1
    ) -> Array:
        """Return the standard deviation of each total when the stream costs ``rho``.

        Contributions have norm at most 1. The result is a float64 ndarray of shape (steps,).

        >>> from sfumato.streaming import EfficientTreeAggregator
        >>> EfficientTreeAggregator(lambda: 0.0).deviations(2, rho=1).round(3).tolist()
        [1.0, 0.816]
        """
        square = self.squared_sensitivity(
            steps, participations=participations, separation=separation
        )
        sigma_squared = float(square) / (2 * float(positive(rho, "rho")))
        return np.sqrt(self.variances(steps) * sigma_squared)

    def whole(self, steps: int, state: NoiseState | None = None) -> Array:
        """Return the noise of a whole horizon at once: a float64 ndarray of shape (steps,).

        It is the noise that stepping through the horizon would give.

        Parameters
        ----------
        steps : int
        state : NoiseState, optional
            A state of the generator, as ``value_generator.initialize()`` returns it. None: a fresh
            one.

        Raises
        ------
        UsageError
            If the generator is not a ``GaussianNoiseGenerator`` of single floats.
        """
        generator = self.value_generator
        if not isinstance(generator, GaussianNoiseGenerator):
            raise UsageError(
                "a whole horizon at once",
                "the values come from a generator of your own",
                "Call get_cumsum_and_update",
            )

        def draw(count: int) -> Array:
            return generator.many(generator.initialize() if state is None else state, count)

        return self._whole(steps, draw)

    @abc.abstractmethod
    def _first(self, generator_state: object) -> State:
        """Return the state before the first step, from that of the generator."""

    @abc.abstractmethod
    def _generator_state(self, state: object) -> object:
        """Return the state of the generator that a state of this aggregator keeps."""

    def _foreign(self) -> UsageError:
        return UsageError(
            f"a step of {type(self).__name__}",
            "the state belongs to another aggregator",
            "Start from this one's init_state()",
        )

    @abc.abstractmethod
    def _whole(self, steps: int, draw: Callable[[int], Array]) -> Array:
        """Return the noise of ``steps`` steps, from as many values as they take."""


@explained
def plot_errors(
    aggregators: Mapping[str, Aggregator[object]],
    steps: int,
    *,
    rho: Exactly,
    ax: Axes | None = None,
) -> Axes:
    """Draw the standard deviation at each step, for several aggregators at one cost.

    Parameters
    ----------
    aggregators : dict of Aggregator, by label
        At most six.
    steps : int
    rho : number
        The cost of each of them, for one participation of norm at most 1.
    ax : Axes, optional

    Returns
    -------
    Axes

    >>> from sfumato.streaming import EfficientTreeAggregator, ToeplitzAggregator, plot_errors
    >>> root = ToeplitzAggregator(lambda: 0.0, horizon=64)
    >>> found = {"tree": EfficientTreeAggregator(lambda: 0.0), "square root": root}
    >>> plot_errors(found, 64, rho="0.5").get_xlabel()
    'step'
    """
    deviations = {
        label: aggregator.deviations(steps, rho=rho) for label, aggregator in aggregators.items()
    }
    return drawn("streams.draw_errors", deviations, ax)


def check_steps(steps: int, most: int | None = None) -> int:
    """Refuse numbers of steps below 1 or beyond a horizon."""
    number = whole(
        steps,
        "steps",
        1,
        obstacle="there is at least one step",
        remedy="Give a whole number from 1 on",
    )
    if most is not None and number > most:
        raise beyond(most)
    return number


def beyond(horizon: int) -> UsageError:
    """Return the refusal of a step after the horizon."""
    return UsageError(
        f"a step beyond the horizon of {horizon:,}",
        "the parameters and the cost were fixed for that many steps",
        "Start a new stream with a longer horizon, or restart with reset_state and pay for it",
    )
