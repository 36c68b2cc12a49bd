"""The least Gaussian noise for a guarantee."""

import mpmath
import pytest

from sfumato import risk


def test_the_gaussian_for_a_promise():
    noise = risk.gaussian_for(epsilon="0.5", delta="1e-9", sensitivity=3)
    level = mpmath.mpf("0.5")
    m = mpmath.mpf(3) / mpmath.mpf(noise.sigma)
    spent = mpmath.ncdf(m / 2 - level / m) - mpmath.exp(level) * mpmath.ncdf(-m / 2 - level / m)
    assert float(spent) == pytest.approx(1e-9, rel=1e-6)
