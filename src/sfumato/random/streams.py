"""A stream of private bits for each of many messages: noise that is a function of its message.

An engine may evaluate a part of a query twice. Noise that came from a common keystream would then
be drawn twice; here a message has the same noise in every evaluation, in whatever batch it stands.

*Keyed hashes* (``Macs``) of many messages at once are their AES-256 CBC-MACs, two words each. The
length in the first block makes sure that no message is a prefix of another, and CBC-MAC over
prefix-free messages is a pseudorandom function (Bellare, Pietrzak, Rogaway 2005, Thm 3), given that
AES-256 is a pseudorandom permutation.

*Streams.*

Guarantee: given that AES-256 is a pseudorandom permutation, the words of distinct messages are
indistinguishable from independent uniform ones to whoever does not hold the secret.
Holds because: block i of the stream of a message is its CBC-MAC under the secret, with the kind of
the message and the number i in the first block beside its length (``Macs``). So all blocks of all
messages are values of a pseudorandom function at distinct points. Blocks number B in all, of
messages of at most l blocks each, are told from uniform ones with an advantage of at most about 12
l B^2 2^-128: 10^10 keys of 64 bytes, which take two blocks of stream at most on average, are 2^-52.
Not covered: whoever holds the secret knows all noise that comes from it.
Source: Bellare, Pietrzak, Rogaway 2005, Thm 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.errors import InternalError
from sfumato.random.bits import Words

Bytes = np.typing.NDArray[np.uint8]
Offsets = np.typing.NDArray[np.int64]

BLOCK = 16
"""Bytes of an AES block."""


class Macs:
    """Hashes messages under a secret of 32 bytes."""

    def __init__(self, secret: bytes) -> None:
        self._cipher = Cipher(algorithms.AES256(secret), modes.ECB()).encryptor()

    def encrypted(self, blocks: Words) -> Words:
        """Encrypt each block by itself: uint64 ndarray of shape (blocks, 2)."""
        plain = np.ascontiguousarray(blocks)
        # The cipher wants room for one block more than it fills.
        room = np.empty(plain.nbytes + BLOCK, np.uint8)
        self._cipher.update_into(plain.reshape(-1).view(np.uint8).data, room.data)
        return room[: plain.nbytes].view(np.uint64).reshape(-1, 2)

    def of(self, offsets: Offsets, data: Bytes, head: int = 0) -> Words:
        """Give the two words of each message: uint64 ndarray of shape (messages, 2).

        Messages are hashed in classes of similar length: padding then costs little.

        Parameters
        ----------
        offsets : int64 ndarray of shape (messages + 1,)
            Where each message begins in ``data``, and where the last one ends.
        data : uint8 ndarray
        head : int
            A number below 2^64 that is hashed before each message: hashes of one message under
            different heads are as if drawn independently.
        """
        starts = offsets[:-1]
        lengths = np.diff(offsets)
        n_blocks = -(-lengths // BLOCK)
        if len(lengths) and n_blocks.min() == n_blocks.max() <= _FEWEST_BLOCKS:
            return self._of_class(starts, lengths, data, head)
        macs = np.empty((len(n_blocks), 2), np.uint64)
        remaining = np.argsort(-n_blocks, kind="stable")  # longest first
        most_blocks = _FEWEST_BLOCKS
        while len(remaining):
            in_class = n_blocks[remaining] <= most_blocks
            messages = remaining[in_class]
            remaining = remaining[~in_class]
            macs[messages] = self._of_class(starts[messages], lengths[messages], data, head)
            most_blocks *= 4
        return macs

    def _of_class(self, starts: Offsets, lengths: Offsets, data: Bytes, head: int) -> Words:
        """Hash some messages, which are sorted by their number of blocks, the longest first."""
        longest = int(lengths.max(initial=0))
        n_blocks = -(-longest // BLOCK)
        padded = padded_words(starts, lengths, data, 2 * n_blocks)
        blocks = padded.reshape(len(starts), n_blocks, 2)
        # Rows that have ended drop out, so a message is hashed alike in whatever class it is: how
        # it is padded decides nothing.
        # The length comes first, so that no message is a prefix of another.
        firsts = np.arange(longest + 1) if longest < len(lengths) else lengths
        first_block = np.empty((len(firsts), 2), np.uint64)
        first_block[:, 0] = firsts
        first_block[:, 1] = head
        state = self.encrypted(first_block)
        if firsts is not lengths:
            # There are fewer lengths than messages: each is encrypted once.
            state = state.take(lengths, axis=0)
        for i in range(n_blocks):
            n_longer = int(np.count_nonzero(lengths > i * BLOCK))
            state[:n_longer] = self.encrypted(state[:n_longer] ^ blocks[:n_longer, i])
        return state


_FEWEST_BLOCKS = 4
"""How many blocks the messages of the shortest class have at most."""


def padded_words(starts: Offsets, lengths: Offsets, data: Bytes, n_words: int) -> Words:
    """Give the first bytes of messages, filled with zeros: uint64 ndarray of (messages, words).

    Beyond two words, those of most blocks must come first.

    Parameters
    ----------
    starts, lengths : int64 ndarray of shape (messages,)
        Where each message begins in the data, and how many bytes it has.
    data : uint8 ndarray
    n_words : int
        An even number: of each message, 8 times as many bytes are given.
    """
    padded = np.zeros((len(starts), n_words), np.uint64)
    if not padded.size:
        return padded
    # Eight bytes at a time, and a mask for the last ones: many times as fast as byte by byte.
    first = int(starts.min())
    own_bytes = data[first : int((starts + lengths).max())]
    room = np.concatenate([own_bytes, np.zeros(2 * _WORD, np.uint8)])
    # A word begins at every byte.
    words = np.ndarray(len(own_bytes) + _WORD + 1, np.uint64, room, strides=(1,))
    for column in range(min(n_words, -(-int(lengths.max()) // _WORD))):
        # Behind the data there is room for two words.
        n_longer = len(starts)
        if column > 1:
            n_longer = int(np.count_nonzero(lengths > column // 2 * BLOCK))
        own = words[starts[:n_longer] - first + column * _WORD]
        left = lengths[:n_longer] - column * _WORD
        padded[:n_longer, column] = own & _LOW_BYTES.take(left, mode="clip")
    return padded


_WORD = 8
_LOW_BYTES = np.array([2 ** (8 * count) - 1 for count in range(_WORD + 1)], np.uint64)
"""Masks that keep so many of a word's first bytes."""

MOST_KINDS = 256

_TOGETHER = 2**13
"""Of how many streams blocks are made at once."""


class Streams:
    """Streams of words, one for each message, in the order of the messages.

    A sampler that is given streams in place of bits draws its i-th value from the i-th stream
    alone, just as it draws one value from bits.

    Parameters
    ----------
    secret : bytes of length 32
        Drawn for this purpose, and used for no other.
    kind : int
        From 0 to 255: messages of different kinds have streams of their own.
    offsets : int64 ndarray of shape (messages + 1,)
        Where each message begins in ``data``, and where the last one ends.
    data : uint8 ndarray
    private : bool
        Whether nobody can predict the secret.

    >>> import numpy as np
    >>> data = np.frombuffer(b"ab", np.uint8)
    >>> streams = Streams(bytes(32), 0, np.array([0, 1, 2]), data)
    >>> streams.one(1).words(2).tolist() == streams.block(0)[1].tolist()
    True
    """

    def __init__(
        self, secret: bytes, kind: int, offsets: Offsets, data: Bytes, *, private: bool = True
    ) -> None:
        self.private = private
        self._macs = Macs(secret)
        self._kind = kind
        self._starts = offsets[:-1]
        self._ends = offsets[1:]
        self._data = data

    def __len__(self) -> int:
        return len(self._starts)

    def words(self, count: int) -> NoReturn:
        """Refuse words that would belong to no stream."""
        raise InternalError(f"A sampler of {count} words at once was given streams.")

    def block(self, number: int, which: np.typing.NDArray[np.int64] | None = None) -> Words:
        """Give two words of each stream: uint64 ndarray of shape (streams, 2).

        Parameters
        ----------
        number : int
            Words 2 * number and 2 * number + 1 of each stream.
        which : int64 ndarray or None
            Of which streams; None: of all of them.
        """
        starts = self._starts if which is None else self._starts[which]
        ends = self._ends if which is None else self._ends[which]
        head = number * MOST_KINDS + self._kind
        if which is None:
            return self._macs.of(np.append(starts, ends[-1:]), self._data, head)
        lengths = ends - starts
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        # Each byte of the messages that are wanted, by its index in all messages.
        indices = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return self._macs.of(offsets, self._data[indices], head)

    def one(self, index: int) -> Stream:
        """Give one stream, from its first word on."""
        return Stream(self, index, np.zeros(0, np.uint64))

    def several(self, which: np.typing.NDArray[np.int64]) -> Iterator[tuple[int, Stream]]:
        """Give some streams with their indices, each from its first word on."""
        for start in range(0, len(which), _TOGETHER):
            part = which[start : start + _TOGETHER]
            ahead = np.concatenate([self.block(number, part) for number in range(4)], axis=1)
            for index, words in zip(part.tolist(), ahead, strict=True):
                yield index, Stream(self, index, words)


class Stream:
    """The words of one message, in order.

    Parameters
    ----------
    streams : Streams
    index : int
        Of the message.
    known : uint64 ndarray
        Its first words: whole blocks that were made already.
    """

    def __init__(self, streams: Streams, index: int, known: Words) -> None:
        self.private = streams.private
        self._streams = streams
        self._index = np.array([index])
        self._known = known
        self._next = 0

    def words(self, count: int) -> Words:
        """Return the next words, shape (count,), in an array that belongs to the caller."""
        last = self._next + count
        while len(self._known) < last:
            block = self._streams.block(len(self._known) // 2, self._index)
            self._known = np.append(self._known, block[0])
        # A copy: the caller may write to it, and the words known ahead must stay.
        fresh = self._known[self._next : last].copy()
        self._next = last
        return fresh
