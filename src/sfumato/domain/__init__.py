"""The public axes and the lattice of cells on them; nothing here knows of privacy."""

from sfumato.basics import attached

__getattr__, __dir__, __all__ = attached(__name__)
