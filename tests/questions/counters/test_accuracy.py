"""Intervals and bands hold as often as they say."""

from __future__ import annotations

import numpy as np

import sfumato as sf


def test_intervals_hold_as_often_as_they_say() -> None:
    """600 streams of each mechanism: intervals of single steps, and bands for all steps."""
    for counter, cost in [
        (sf.Counter(30), sf.PureDP("0.5")),
        (sf.Counter(30), sf.ZCDP("0.02")),
        (sf.Counter(None), sf.PureDP("0.5")),
    ]:
        mechanism = counter.settle(None, sf.Unit(), cost).mechanism
        from sfumato.questions.counters.question import half_widths
        from sfumato.random import PublicSeed

        errors = np.empty((600, 30))
        noise = PublicSeed(repr(counter))
        for run in range(len(errors)):
            state = mechanism.start()
            read = mechanism.estimator()
            for step in range(30):
                state, output = mechanism.step(state, (0,), noise)
                errors[run, step] = read(output)[0]
        each, every = (half_widths(mechanism, 1, 30, 0.05, together) for together in (False, True))
        inside = (np.abs(errors) <= each).mean(axis=0)
        assert inside.min() > 0.95 - 5 * (0.0475 / 600) ** 0.5
        if mechanism.horizon:
            assert inside.mean() < 0.98
        assert (np.abs(errors) <= every).all(axis=1).mean() > 0.95 - 5 * (0.0475 / 600) ** 0.5
        assert 0.75 < (errors.var(axis=0) / mechanism.variances(1, 30)).mean() < 1.25
