"""Bounds under concentrated privacy."""

import numpy as np

from sfumato import risk
from sfumato.privacy.measures import ZCDP
from sfumato.risk import Gaussian


def test_the_bound_of_zcdp_is_not_far_from_gaussian_noise():
    assert risk.advantage(ZCDP("0.5")) < risk.advantage(Gaussian(1)) * 1.3
    assert risk.advantage(ZCDP("1e-6")) < risk.advantage(Gaussian(float(1 / np.sqrt(2e-6)))) * 1.3
