"""A release made under a script is marked as not private."""

import pytest

from sfumato.audit.runs import Scripted, count
from sfumato.privacy.unit import Unit
from support.broken import CLAIM, DOMAIN, QUESTION


def test_a_release_under_a_script_says_that_it_is_not_private():
    release = QUESTION.answer(
        count(((0.5,),), QUESTION.needs(DOMAIN).lattice), Unit(), CLAIM, Scripted()
    )
    assert not release.guarantee.private
    assert "NOT PRIVATE" in repr(release)
    with pytest.raises(AttributeError):
        Scripted().private = True
