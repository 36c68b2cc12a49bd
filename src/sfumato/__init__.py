"""Sfumato publishes what personal data show without betraying anyone in them.

A question is a frozen value; a publisher charges the ledger, counts once, and returns a release that
states its own guarantee and its own accuracy. Nothing heavy is imported until a name is used: the stub
``__init__.pyi`` says where each public name is, to type checkers and here.
"""

import lazy_loader

_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    return _attribute(name)
