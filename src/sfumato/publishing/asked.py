"""What is asked, in the one form under which a ledger finds its stored answer again.

It knows the state of the data, so it goes nowhere but into the ledger's secrets. Its form must not
change: stored answers are found again by it, also those of version 0.1 in a ledger that was
upgraded. Noise from a public seed is part of it, so that such an answer never stands in for a
private one.
"""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import UNSET

from sfumato.answers.codec import to_bytes
from sfumato.answers.registry import require_registered
from sfumato.data import Source
from sfumato.privacy.measures import CentralMeasure
from sfumato.publishing.answering import PlannedRelease
from sfumato.publishing.plan import Plan
from sfumato.questions.counters.question import Counter, Settled
from sfumato.random.bits import Bits


def as_stored(plan: Plan) -> Plan:
    """A plan with its questions as files hold them, from which they are read back as they are.

    An answer holds its question. Signed with the question as it was asked, it would not match the
    signature once it is saved and loaded. Words for people are no part of what is stored there.
    """
    require_registered(plan.questions)
    questions = [question.uncaptioned().as_in_files() for question in plan.questions]
    return msgspec.structs.replace(plan, questions=questions)


def asked_release(account: str, source: Source, planned: PlannedRelease) -> list[str]:
    """The hashes of the questions, of which state of the data, at which cost.

    The first is the one of now. The others are those of earlier versions, in which a question that
    was written in another way was another question, and a plan's cost was divided as it is stated.
    """
    domain = source.domain

    def hash_of(questions: list[object], costs: object) -> str:
        what = (
            account,
            questions,
            costs,
            list(domain.items()),
            source.unit,
            planned.label,
            _seed(planned.noise),
        )
        return _fingerprint(what)

    questions = planned.plan.questions
    forms: list[list[object]] = [
        [question.asks(domain) for question in questions],
        [question.canonical(domain) for question in questions],
    ]
    if planned.choice is None or planned.costs == _stated_parts(planned):
        found = [hash_of(form, planned.costs) for form in forms]
    else:
        # What was asked, and not what was picked: a version that picks better still finds the
        # answer that was paid for.
        found = [hash_of(forms[0], _picking(planned))]
        before = _stated_parts(planned)
        if planned.plan.is_bare and before is not None:
            found += [hash_of(form, before) for form in forms]
    return list(dict.fromkeys(found))


def _stated_parts(planned: PlannedRelease) -> list[CentralMeasure] | None:
    """The parts of the cost where nothing is picked; None without a cost."""
    return None if planned.stated.cost is None else planned.stated.parts(planned.plan)


def _picking(planned: PlannedRelease) -> object:
    """The cost of a plan as it was asked for, with all that decides what is picked."""
    plan = planned.plan
    options = (plan.shares, plan.accuracy, plan.weights, plan.minimise, plan.noise, plan.rows)
    return ("picked", planned.stated, [None if one is UNSET else one for one in options])


def asked_stream(
    account: str, source: Source, counter: Counter, settled: Settled, noise: Bits
) -> str:
    """What a stream is opened for.

    The source's name is part of it: streams of two sources under one key would add up rows of
    both.
    """
    what = (
        account,
        "stream",
        counter,
        settled.cost,
        source.unit,
        settled.axis,
        settled.labels,
        _seed(noise),
    )
    return f"{_fingerprint(what)} of {source.title}"


def _seed(noise: Bits) -> str:
    return "private" if noise.private else "public seed"


def _fingerprint(what: object) -> str:
    return hashlib.sha256(to_bytes(what)).hexdigest()
