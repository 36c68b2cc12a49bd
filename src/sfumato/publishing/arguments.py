"""Refuse wrong arguments of a publisher before anything else is done."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypedDict

import msgspec

from sfumato.basics.numbers import Exactly
from sfumato.data import Source
from sfumato.errors import UsageError, warn_once
from sfumato.privacy.unit import Unit

P = ParamSpec("P")

if TYPE_CHECKING:
    from sfumato.data.reader import Progress


class CostOptions(TypedDict, total=False):
    """How a cost is given by name."""

    epsilon: Exactly | None
    delta: Exactly
    rho: Exactly | None


class PreviewOptions(CostOptions, total=False):
    """What ``Publisher.preview`` takes by name."""

    rows: int | None


class ReleaseOptions(CostOptions, total=False):
    """What ``Publisher.release`` takes by name."""

    key: str | None
    fresh: bool
    progress: Progress | None


def check_key(key: object) -> None:
    """Refuse a key that is no text."""
    if key is not None and (not isinstance(key, str) or not key):
        raise UsageError(
            f"key of type {type(key).__name__}",
            "a key is a text that is not empty",
            "Name the release, or leave the key out",
        )


def check_stream_unit(unit: Unit) -> None:
    """Refuse limits that a stream does not keep: it counts a person's rows in all its steps."""
    if unit.by_cell or len(unit.person_columns) > 1:
        raise UsageError(
            "opening a Counter under limits by cell or a period",
            "a stream keeps a limit on the rows of a person in all its steps alone",
            "Give the source one person column and rows_per_person",
        )
    if unit.where is not msgspec.UNSET:
        raise UsageError(
            "opening a Counter on a source with where",
            "steps are pushed, and are not read from the source: no condition drops their rows",
            "Push the rows that satisfy it alone, and give the source no condition",
        )


def check_fresh(fresh: object) -> None:
    """Refuse a flag that is neither true nor false."""
    if not isinstance(fresh, bool):
        raise UsageError(
            "fresh",
            "it is true or false",
            "Write fresh=True to pay for a new draw, or leave it out",
        )


def check_progress(progress: object) -> None:
    """Refuse what cannot be called."""
    if progress is not None and not callable(progress):
        raise UsageError(
            f"progress = {type(progress).__name__}",
            "it cannot be called",
            "Give a function of rows done and rows in all",
        )
    if progress is not None and not _takes_two(progress):
        raise UsageError(
            "progress",
            "it does not take two arguments",
            "Give a function of rows done and rows in all",
        )


def _takes_two(function: Callable[P, object]) -> bool:
    """Whether a function can be called with two arguments; one that does not say so may."""
    try:
        inspect.signature(function).bind(0, None)
    except TypeError:
        return False
    except ValueError:  # a function of C without a signature
        return True
    return True


def warn_of_no_name(source: Source) -> None:
    """Say once that answers about a table in memory without a name are not found again."""
    if source.name is not None or not source.in_memory:
        return
    again = "This table has no name, so whoever runs this again pays again"
    remedy = 'Write sf.source(..., name="people"), and a new version= whenever its rows change.'
    # Four levels up is whoever asked for the release: one is the wrapper that drops frames.
    warn_once(f"{again}: its stored answers are not found. {remedy}", stacklevel=4)
