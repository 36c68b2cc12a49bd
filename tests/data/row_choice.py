"""Which rows a person keeps, in plain Python: one block of AES after another, and sorting."""

from __future__ import annotations

import math
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from data import random_tables
from sfumato.data.priorities import PersonTokens
from sfumato.domain.lattice import Lattice, LatticeAxis

Row = Mapping[str, object]
Cell = tuple[int, ...]

FIRST_SECRET = 2**127 + 2**64  # in the keystream of the key; each secret takes two blocks


def secret(key: bytes, number: int) -> bytes:
    counter = (FIRST_SECRET + 2 * number).to_bytes(16, "big")
    return Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor().update(bytes(32))


def mac(under: bytes, words: Sequence[int], start: int = 0) -> int:
    """CBC-MAC of 64-bit words, of which the first word is taken; ``start`` is that of the chain."""
    message = b"".join((word % 2**64).to_bytes(8, "little") for word in words)
    message += bytes(-len(message) % 16)
    chain = modes.CBC(start.to_bytes(16, "little"))
    cipher = Cipher(algorithms.AES256(under), chain).encryptor()
    return int.from_bytes(cipher.update(message)[-16:-8], "little")


def person_word(key: bytes, person: object) -> int:
    """A bijection of a whole number, however it is written; else one that follows from the text's
    token.
    """
    tokens = PersonTokens(key)
    if isinstance(person, str) and not re.fullmatch("0|-?[1-9][0-9]*", person, re.ASCII):
        return int(tokens._mixed(tokens.of(pa.array([person]))[0])[0])
    assert isinstance(person, str | int)
    return int(tokens._mixed(np.array([int(person)]).view(np.uint64))[0])


def value_word(value: object, axis: LatticeAxis) -> int:
    """A label's number, or the bits of a number's double."""
    if not axis.has_edges:
        return random_tables._cell(value, axis)
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    double = float("nan") if missing else random_tables._number(value) + 0.0
    return int.from_bytes(struct.pack("<d", double), "little")


def by_priority(
    rows: Sequence[Row], axes: Sequence[LatticeAxis], key: bytes, person: str
) -> dict[object, list[Row]]:
    """The rows of each person, in the order of their priorities.

    Parameters
    ----------
    axes : sequence of LatticeAxis
        Whose columns' values choose, in the order of their names.
    """
    words_of = {}
    copies: Counter[tuple[int, ...]] = Counter()
    own: dict[object, list[tuple[int, int]]] = defaultdict(list)
    for index, row in enumerate(rows):
        if (who := row[person]) is None:
            continue
        words_of.setdefault(who, person_word(key, who))
        words = (words_of[who], *(value_word(row[axis.name], axis) for axis in axes))
        copies[words] += 1
        priority = mac(secret(key, 0), words[1:], start=words[0])
        if copies[words] > 1:
            priority = mac(secret(key, 1), (priority, copies[words]))
        own[who].append((priority, index))
    return {who: [rows[index] for _, index in sorted(pairs)] for who, pairs in own.items()}


def bounded(
    rows: Sequence[Row],
    lattices: Sequence[Lattice],
    key: bytes,
    most: int,
    person: str = "who",
) -> list[dict[Cell, int]]:
    """Count, on each lattice, at most ``most`` rows of each person: those of least priority."""
    axes = {axis.name: axis for lattice in lattices for axis in lattice.axes}
    own = by_priority(rows, [axes[name] for name in sorted(axes)], key, person)
    found = []
    for lattice in lattices:
        cells: Counter[Cell] = Counter()
        for several in own.values():
            located = [cell for row in several for cell in random_tables.expected([row], lattice)]
            cells.update(located[:most])
        found.append(dict(cells))
    return found
