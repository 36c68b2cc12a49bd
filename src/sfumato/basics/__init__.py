"""Numbers, text, files and processes: what every room needs, and what knows nothing of privacy."""

from sfumato.basics.lazily import attached

__getattr__, __dir__, __all__ = attached(__name__)
