"""Is a planted value to be seen anywhere?

The search covers what objects print and pickle, and what calls log, warn of and raise.
"""

from __future__ import annotations

import io
import json
import logging
import pickle
import struct
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import msgspec

from sfumato.answers.release import Release
from sfumato.basics.structs import to_bytes

Canary = int | float | str


@dataclass(frozen=True)
class Sighting:
    """Where a canary was seen, and in which form."""

    where: str
    form: bytes


def forms(canary: Canary) -> set[bytes]:
    """How a value may look: as text in several ways, and as bytes of numpy and pickle."""
    if isinstance(canary, str):
        return {canary.encode(), canary.encode("utf-16-le"), canary.encode().hex().encode()}
    seen = {str(canary), repr(canary), f"{canary:,}", f"{canary:g}", f"{canary:.6g}"}
    packed = {struct.pack(order + "d", canary) for order in "<>"}
    if canary == int(canary):
        seen |= {str(int(canary)), f"{int(canary):,}"}
        packed |= {
            struct.pack(order + size, int(canary))
            for order in "<>"
            for size in ("q", "i")
            if abs(canary) < 2**31
        }
    return {text.encode() for text in seen if len(text) >= 4} | packed


def sightings(canary: Canary, *things: Any) -> list[Sighting]:
    """Search everything that objects show of themselves.

    These are repr, str, format, JSON and pickle, where each is allowed.
    """
    found = []
    for thing in things:
        for where, shown in _faces(thing):
            found += [
                Sighting(f"{where} of {type(thing).__name__}", form)
                for form in forms(canary)
                if form in shown
            ]
    return found


def overheard(canary: Canary, call: Callable[[], Any]) -> list[Sighting]:
    """Run a call, and search what it returns, prints, logs, warns of and raises.

    Errors are searched with their causes and contexts.
    """
    out, log = io.StringIO(), io.StringIO()
    handler, root = logging.StreamHandler(log), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    result, raised = None, ""
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            redirect_stdout(out),
            redirect_stderr(out),
        ):
            warnings.simplefilter("always")
            try:
                result = call()
            except Exception as error:
                raised = "\n".join(_told(error))
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    said = {
        "output": out.getvalue(),
        "log": log.getvalue(),
        "warnings": " ".join(str(w.message) for w in warned),
        "exception": raised,
    }
    found = [
        Sighting(where, form)
        for where, text in said.items()
        for form in forms(canary)
        if form in text.encode()
    ]
    return found + sightings(canary, result)


def _told(error: BaseException) -> Iterator[str]:
    """All that an exception and those behind it say, whether or not a traceback would show them."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        told = waiting.pop()
        if told is None or id(told) in seen:
            continue
        seen.add(id(told))
        yield from (
            str(told),
            repr(told),
            repr(told.args),
            repr(vars(told)),
            *getattr(told, "__notes__", ()),
        )
        yield "".join(traceback.format_exception_only(told))
        waiting += [told.__cause__, told.__context__]


def _faces(thing: Any) -> Iterator[tuple[str, bytes]]:
    yield "repr", repr(thing).encode()
    yield "str", str(thing).encode()
    yield "format", f"{thing}".encode()
    for where, write in (("pickle", pickle.dumps), ("json", _json)):
        try:
            shown = write(thing)
        except Exception as error:  # refused: what the refusal says is searched instead
            shown = "\n".join(_told(error)).encode()
        yield where, shown


def _json(thing: Any) -> bytes:
    if isinstance(thing, Release):
        return to_bytes(thing)
    if isinstance(thing, msgspec.Struct):
        return msgspec.json.encode(thing, enc_hook=str)
    return json.dumps(thing).encode()
