"""Windows over one small domain."""

import sfumato as sf

DOMAIN = sf.Domain(
    age=sf.Interval(0, 100, step=2),
    kind=sf.Categories(["a", "b"]),
    lon=sf.Interval(0, 1),
    lat=sf.Interval(0, 1),
)
FIFTY = sf.Histogram("age")
TWO = sf.Histogram("kind")
ACCURACY = sf.Within(20, confidence=0.95, simultaneous=True)
RISK = sf.Risk(prior=0.01, posterior=0.05)
UNITS = [sf.Unit(), sf.Unit(rows_per_person=3), sf.Unit(rows_per_person=2, neighbours="replace")]
MEASURES = [{}, {"measure": "zcdp"}, {"delta": "1e-6"}]


def opened(question=FIFTY, accuracy=ACCURACY, risk=None, unit=UNITS[0], **options):
    advantage = sf.Risk(advantage=0.3) if options else RISK
    return sf.window(
        question, domain=DOMAIN, unit=unit, accuracy=accuracy, risk=risk or advantage, **options
    )


def enough(window, cost):
    """Whether every question is as accurate as requested at this cost, by its own preview."""
    shares = window.plan.costs(cost)
    for question, share, part in zip(window.plan.questions, shares, window.parts, strict=True):
        preview = question.preview(DOMAIN, window.unit, share, None)
        within = part.accuracy
        if preview.accuracy(within.confidence, within.simultaneous) > within.half_width:
            return False
    return True


def less(window, cost):
    return window.kind.cost(int(window.kind.level(cost) * window.kind.units) - 1)


def more(window, cost):
    return window.kind.cost(int(window.kind.level(cost) * window.kind.units) + 1)
