"""Messages that differ in anything have hashes of their own, however they are laid out."""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.random.streams import Macs


def laid(messages: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in messages])])
    return offsets, np.frombuffer(b"".join(messages), np.uint8)


def by_the_book(secret: bytes, message: bytes, head: int) -> bytes:
    """CBC-MAC: the last block of AES-CBC from zeros."""
    first = len(message).to_bytes(8, "little") + head.to_bytes(8, "little")
    padded = first + message + bytes(-len(message) % 16)
    cipher = Cipher(algorithms.AES256(secret), modes.CBC(bytes(16))).encryptor()
    return cipher.update(padded)[-16:]


def test_hashes_are_those_of_the_book() -> None:
    secret = bytes(range(32))
    lengths = [0, 1, 15, 16, 17, 31, 32, 33, 64, 65, 300, 5000]
    messages = [bytes([length % 251]) * length for length in lengths]
    for head in (0, 7, 2**63):
        found = Macs(secret).of(*laid(messages), head)
        expected = [by_the_book(secret, message, head) for message in messages]
        assert [row.tobytes() for row in found] == expected


def test_what_differs_by_one_byte_length_head_or_secret_differs() -> None:
    messages = [b"", b"\0", b"\0\0", b"a", b"a\0", b"b", bytes(16), bytes(17)]
    seen = {
        row.tobytes()
        for secret in (bytes(32), bytes(31) + b"\1")
        for head in (0, 1, 256)
        for row in Macs(secret).of(*laid(messages), head)
    }
    assert len(seen) == 2 * 3 * len(messages)


def test_no_messages_have_no_hashes() -> None:
    assert Macs(bytes(32)).of(np.zeros(1, np.int64), np.zeros(0, np.uint8)).shape == (0, 2)
