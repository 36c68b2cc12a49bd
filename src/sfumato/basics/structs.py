"""A msgspec Struct that says in three parts which of its arguments do not fit.

It is no part of ``errors``, which imports no library: a script that fails needs nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from sfumato.errors import ArgumentError, SfumatoError, misfit_of

if TYPE_CHECKING:
    # Type checkers know a Struct's arguments from its fields, and no metaclass must hide them.
    ExplainedStruct = msgspec.Struct
else:

    class _Explaining(type(msgspec.Struct)):
        """Calls the class; what msgspec says of arguments that do not fit is said as we say it."""

        def __call__(cls, *args: object, **named: object) -> object:
            first = cls.__match_args__
            tables = [
                (name, value)
                for name, value in [*zip(first, args, strict=False), *named.items()]
                if _is_table(value)
            ]
            try:
                return super().__call__(*args, **named)
            except (TypeError, ValueError) as error:
                # An error from within the class has frames below this one.
                within = error.__traceback__ is None or error.__traceback__.tb_next is not None
                if within and (isinstance(error, SfumatoError) or not tables):
                    raise
            if within:
                raise _no_table(cls.__name__, *tables[0])
            fields = msgspec.structs.fields(cls)
            others = [field.name for field in fields if field.name not in first]
            needed = [field.name for field in fields if field.required]
            raise misfit_of(cls.__name__, first, others, needed, len(args), named)

    def _is_table(value: object) -> bool:
        """Whether a value compares to others by an array: one of numpy, a column or a frame."""
        return hasattr(value, "dtype") or hasattr(value, "__arrow_c_stream__")

    def _no_table(called: str, name: str, value: object) -> ArgumentError:
        obstacle = f"a value of type {type(value).__name__} is not what it takes"
        remedy = "Give a number, a word or a list; help() says which"
        return ArgumentError(f"{called}({name}=...)", obstacle, remedy)

    class ExplainedStruct(msgspec.Struct, metaclass=_Explaining):
        """A Struct whose class refuses arguments that do not fit by an ``ArgumentError``."""
