"""The exact audit where the first draw decides what comes next."""

from audit.subjects import SUBJECTS
from sfumato.audit.likelihoods import renyi_loss
from sfumato.audit.runs import neighbours
from sfumato.audit.subjects.subject import ON_LINE
from sfumato.privacy.measures import ZCDP
from sfumato.privacy.unit import Unit


def test_high_orders_where_the_first_draw_decides():
    """There the integrand lies far out in the tail of the first draw."""
    grids = [one for one in SUBJECTS if one.name == "Uniform grid, noisy rows"]
    (subject,) = (one for one in grids if one.unit == Unit() and isinstance(one.claim, ZCDP))
    pairs = neighbours(ON_LINE[:1], Unit(), others=0)
    found = renyi_loss(subject.mechanism, pairs, (1.01, 64.0), decides=True)
    assert 0.98 * 0.5 <= found.loss <= 0.5 * (1 + 1e-9)
