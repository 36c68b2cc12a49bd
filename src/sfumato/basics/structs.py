"""A msgspec Struct that says in three parts which of its arguments do not fit.

It is no part of ``errors``, which imports no library: a script that fails needs nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from sfumato.errors import ArgumentError, SfumatoError, misfit_of, shortened, was_entered

if TYPE_CHECKING:
    # Type checkers know a Struct's arguments from its fields, and no metaclass must hide them.
    ExplainedStruct = msgspec.Struct
else:

    class _Explaining(type(msgspec.Struct)):
        """Calls the class; what msgspec says of arguments that do not fit is said as we say it."""

        def __call__(cls, *args: object, **named: object) -> object:
            try:
                return super().__call__(*args, **named)
            except SfumatoError as error:
                refusal = error
            except (TypeError, ValueError) as error:
                unfit = _misfit(cls, args, named, error)
                if unfit is None:
                    raise
                refusal = unfit
            # Outside the except block, so that Python adds no context again.
            try:
                raise shortened(refusal)
            finally:
                del refusal

    def _misfit(
        cls: type, args: tuple[object, ...], named: dict[str, object], error: Exception
    ) -> ArgumentError | None:
        """The error of arguments that do not fit, or of a table among them; None of another."""
        first = cls.__match_args__
        if was_entered(error):
            given = [*zip(first, args, strict=False), *named.items()]
            for name, value in given:
                if _is_table(value):
                    return ArgumentError(
                        f"{cls.__name__}({name}=...)",
                        f"a value of type {type(value).__name__} is not what it takes",
                        "Give a number, a word or a list; help() says which",
                    )
            return None
        fields = msgspec.structs.fields(cls)
        others = [field.name for field in fields if field.name not in first]
        needed = [field.name for field in fields if field.required]
        return misfit_of(cls.__name__, first, others, needed, len(args), named)

    def _is_table(value: object) -> bool:
        """Whether a value compares to others by an array: one of numpy, a column or a frame."""
        return hasattr(value, "dtype") or hasattr(value, "__arrow_c_stream__")

    class ExplainedStruct(msgspec.Struct, metaclass=_Explaining):
        """A Struct whose class refuses arguments that do not fit by an ``ArgumentError``."""
