"""Each message has a stream of its own, and a draw from it is one draw from bits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import InternalError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.random import discrete, streams, truncated
from sfumato.random.finite import FiniteSampler
from sfumato.random.streams import Streams
from support.statistics import check_law, check_scale

SAMPLERS: dict[str, Any] = {
    "narrow Laplace": discrete._sampler(1, 10, 3),
    "wide Laplace": discrete._sampler(1, 10**6, 7),
    "narrow Gaussian": discrete._sampler(2, 7, 2),
    "wide Gaussian": discrete._sampler(2, 10**9, 1),
    "truncated": truncated.sampler(Fraction(1), Fraction(1, 10**6)),
}


def numbered(count: int, *, kind: int = 0, secret: bytes = bytes(32), first: int = 0) -> Streams:
    """Streams of the messages "0", "1", and so on."""
    messages = [str(number).encode() for number in range(first, first + count)]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in messages])])
    return Streams(secret, kind, offsets, np.frombuffer(b"".join(messages), np.uint8))


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_draw_from_a_stream_is_one_draw_from_bits(name: str) -> None:
    sampler = SAMPLERS[name]
    many = numbered(3000)
    drawn = sampler.draw(len(many), many)
    assert drawn.dtype == np.int64
    alone = [int(sampler.draw(1, many.one(index))[0]) for index in range(len(many))]
    assert drawn.tolist() == alone


def test_a_draw_that_its_first_bits_leave_open_is_continued_in_its_stream() -> None:
    """A sampler of four bits has to look further in most streams."""

    class OnFourBits(FiniteSampler):
        FIRST_BITS = 4
        MORE_BITS = 4

    sampler = OnFourBits(lambda depth: truncated.enclosed(Fraction(1), Fraction(1, 30), depth))
    many = numbered(500)
    drawn = sampler.draw(len(many), many)
    assert drawn.tolist() == [int(sampler.draw(1, many.one(i))[0]) for i in range(len(many))]


def test_a_message_has_the_same_stream_in_every_batch() -> None:
    whole = numbered(100)
    part = numbered(30, first=50)
    assert (whole.block(3)[50:80] == part.block(3)).all()
    assert (whole.block(2, np.array([7, 99, 0])) == whole.block(2)[[7, 99, 0]]).all()
    for index, stream in whole.several(np.array([3, 98])):
        read = np.concatenate([stream.words(count) for count in (0, 1, 4, 9)])
        assert (read == np.concatenate([whole.block(i)[index] for i in range(7)])).all()
        assert (whole.one(index).words(14) == read).all()


def test_streams_of_other_messages_kinds_and_secrets_share_nothing() -> None:
    seen = [
        word
        for kind in (0, 1, 255)
        for secret in (bytes(32), bytes(31) + b"\1")
        for number in range(4)
        for word in numbered(200, kind=kind, secret=secret).block(number).ravel().tolist()
    ]
    assert len(set(seen)) == len(seen) == 3 * 2 * 4 * 400


def test_several_streams_are_made_in_bounded_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_TOGETHER", 3)
    many = numbered(10)
    for index, stream in many.several(np.arange(10)):
        assert stream.words(2).tolist() == many.block(0)[index].tolist()


def test_a_sampler_that_does_not_know_streams_is_refused() -> None:
    """It would hand bits of one stream to another one's draw."""
    with pytest.raises(InternalError, match="was given streams"):
        discrete.integer_below(10, numbered(5))


def test_whether_the_secret_is_private_is_passed_on() -> None:
    public = Streams(bytes(32), 0, np.array([0, 1]), np.zeros(1, np.uint8), private=False)
    assert not public.private
    assert not public.one(0).private
    assert numbered(1).one(0).private


@pytest.mark.parametrize(
    "law", [DiscreteLaplace(Fraction(10, 3)), DiscreteGaussian(Fraction(7, 2))], ids=str
)
def test_draws_of_many_messages_have_the_law(law: Any) -> None:
    """By chi-square and by the mean of |x|, under fixed secrets: a scale off by 5% is noticed."""
    draws = np.concatenate(
        [law.sample(50_000, numbered(50_000, secret=bytes([i]) * 32)) for i in range(3)]
    )
    check_law(draws, law)
    check_scale(draws, law)


def test_draws_of_neighbouring_messages_secrets_and_kinds_are_independent() -> None:
    """Their signs are not correlated: 6.2 standard errors are a false alarm once in 10^9."""
    law = DiscreteLaplace(Fraction(50))
    base = law.sample(100_000, numbered(100_000))
    others = {
        "next message": law.sample(100_000, numbered(100_000, first=1)),
        "other secret": law.sample(100_000, numbered(100_000, secret=bytes(31) + b"\1")),
        "other kind": law.sample(100_000, numbered(100_000, kind=1)),
    }
    for name, other in others.items():
        correlation = float(np.corrcoef(np.sign(base), np.sign(other))[0, 1])
        assert abs(correlation) < 6.2 / 100_000**0.5, name
        assert (base == other).mean() < 0.02, name
