"""What is asked, in the one form under which a ledger finds its stored answer again.

It knows the state of the data, so it goes nowhere but into the ledger's secrets. Its form must not
change: stored answers, those of version 0.1 too, are found again by it. Noise from a public seed is
part of it, so that such an answer never stands in for a private one.
"""

from __future__ import annotations

import hashlib

import msgspec

from sfumato.answers.codec import to_bytes
from sfumato.answers.registry import require_registered
from sfumato.counters.question import Counter, Settled
from sfumato.data import Source
from sfumato.publishing.answering import PlannedRelease
from sfumato.publishing.plan import Plan
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

    The first is the one of now. The other is that of earlier versions, in which a question that was
    written in another way was another question.
    """
    domain = source.domain

    def hash_of(questions: list[object]) -> str:
        what = (
            account,
            questions,
            planned.costs,
            list(domain.items()),
            source.unit,
            planned.label,
            _seed(planned.noise),
        )
        return _fingerprint(what)

    questions = planned.plan.questions
    now = hash_of([question.asks(domain) for question in questions])
    before = hash_of([question.canonical(domain) for question in questions])
    return [now] if before == now else [now, before]


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
