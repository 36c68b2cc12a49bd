"""Questions, what they may ask of the data, their previews and their releases."""

from sfumato.basics import attached

__getattr__, __dir__, __all__ = attached(__name__)
