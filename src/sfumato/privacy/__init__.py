"""What is promised and what it costs: measures, units, composition, and what a promise means.

``measures`` has exact amounts of privacy loss, adds them up and converts them; ``unit`` says what
one person can change, with the further limits on their rows. ``allocation`` shares a cost
between questions and levels. ``guarantee`` is the promise that a release states, with the rows that
it counts, and ``belief`` says what it means to somebody who suspects something. Nothing here draws
noise.
"""

from sfumato.basics import attached

__getattr__, __dir__, __all__ = attached(__name__)
