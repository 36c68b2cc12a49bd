"""Check that a source is refused before the charge and in the count, quoting no value."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.data import count, source
from sfumato.domain.domain import Domain, Interval, grid_axis
from sfumato.domain.lattice import Lattice
from sfumato.errors import DataError, SfumatoError

CANARY = "8675309"
"""A value of the data that no error may show."""

AGE = Domain(age=Interval(0, 120, step=1))
BY_AGE = Lattice((grid_axis("age", AGE["age"], 12),))


def refused(action: Callable[[], object], kind: type[SfumatoError], *words: str) -> None:
    """The action raises an error of that kind, which has these words and no value."""
    with pytest.raises(kind) as caught:
        action()
    _shows_no_value(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def refuses(
    data: object, *words: str, domain: Domain = AGE, lattice: Lattice = BY_AGE, **unit: Any
) -> None:
    """A source of the data is refused before the charge, and in the count."""
    src = source(data, domain, **unit)
    refused(lambda: src.require([lattice]), DataError, *words)
    refused(lambda: count(src, [lattice]), DataError, *words)


def write(folder: Path, content: bytes | str, name: str = "t.csv") -> Path:
    """Write a file."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _shows_no_value(error: BaseException) -> None:
    """Neither the error nor what it hangs from holds the canary."""
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = (
        str(error),
        repr(error),
        "".join(traceback.format_exception(error)),
        repr(vars(error)),
    )
    assert not any(CANARY in text for text in shown)
