"""Sfumato publishes what personal data show without betraying anyone in them.

A question is a frozen value; a publisher charges the ledger, counts once, and returns a release
that states its own guarantee and its own accuracy. Nothing heavy is imported until a name is used:
the stub ``__init__.pyi`` says where each public name is, to type checkers and here.
"""

from sfumato.lazily import attached

__getattr__, __dir__, __all__ = attached(__name__, "__init__")
