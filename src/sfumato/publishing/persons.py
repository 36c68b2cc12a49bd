"""Tokens that stand for persons while the rows of each are counted in a stream."""

from __future__ import annotations

import hashlib

from sfumato.errors import UsageError


def person_tokens(persons: object, column: str, secret: bytes) -> list[bytes | None]:
    """Return a token for each row's person; None for a row without one, which is dropped.

    Parameters
    ----------
    persons : sequence
        One id per row: texts, whole numbers or bytes.
    column : str
        What the source calls its persons.
    secret : bytes
        The stream's secret, without which tokens cannot be computed from ids.

    Raises
    ------
    UsageError
        If there are no persons, or one is neither a text nor a whole number.
    """
    if isinstance(persons, str | bytes) or not hasattr(persons, "__iter__"):
        raise UsageError(
            "a step without persons",
            f"the source says that {column} is the person",
            f"Give persons=, one {column} per row",
        )
    each = persons.tolist() if hasattr(persons, "tolist") else persons
    return [_token(person, secret) for person in each]


def _token(person: object, secret: bytes) -> bytes | None:
    """Return a keyed hash of a person's id; texts, whole numbers and bytes are told apart."""
    plain = _plain_id(person)
    if plain is None:
        return None
    text = f"{type(plain).__name__} {plain!r}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, key=secret, digest_size=16).digest()


def _plain_id(person: object) -> str | bytes | int | None:
    """Return an id as a value of a plain type; None if it is missing.

    A text of another class, such as a member of an enumeration, is the same person.
    """
    plain: object = person.item() if hasattr(person, "item") else person
    if isinstance(plain, float) and plain.is_integer():
        # pandas holds whole numbers as floats where others of the column are missing.
        plain = int(plain)
    if plain is None or isinstance(plain, float):
        return None
    if isinstance(plain, str):
        return str.__str__(plain)
    if isinstance(plain, bytes):
        return b"".join([plain])
    if isinstance(plain, int) and not isinstance(plain, bool):
        return int.__int__(plain)
    raise UsageError(
        f"a person of type {type(person).__name__}",
        "a person is a text or a whole number",
        "Give such ids",
    )
