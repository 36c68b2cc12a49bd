"""Choosing epsilon: between what is accurate enough and what is safe enough."""

from sfumato.answers.accuracy import Within
from sfumato.choosing.universe import choose
from sfumato.choosing.windows import Window, window

__all__ = ["Window", "Within", "choose", "window"]
