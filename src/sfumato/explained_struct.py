"""A msgspec Struct that says in three parts which of its arguments do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from sfumato.errors import misfit_of

if TYPE_CHECKING:
    # Type checkers know a Struct's arguments from its fields, and no metaclass must hide them.
    ExplainedStruct = msgspec.Struct
else:

    class _Explaining(type(msgspec.Struct)):
        """Calls the class; what msgspec says of arguments that do not fit is said as we say it."""

        def __call__(cls, *args: object, **named: object) -> object:
            try:
                return super().__call__(*args, **named)
            except TypeError as error:
                # An error from within the class has frames below this one.
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise
            fields = msgspec.structs.fields(cls)
            first = cls.__match_args__
            others = [field.name for field in fields if field.name not in first]
            needed = [field.name for field in fields if field.required]
            raise misfit_of(cls.__name__, first, others, needed, len(args), named)

    class ExplainedStruct(msgspec.Struct, metaclass=_Explaining):
        """A Struct whose class refuses arguments that do not fit by an ``ArgumentError``."""
