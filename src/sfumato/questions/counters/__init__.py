"""Running totals that are published step by step: the question, its mechanisms and its calendar.

* ``question``: the question and its errors; ``release``: the answer; ``calendar``: dates of steps
* ``increments``: what is added at a step
* ``mechanism``: what every mechanism offers; ``methods``: which one is chosen
* ``tree``: the elder tree, for pure epsilon; ``toeplitz``: two matrices, for rho
"""

from sfumato.questions.counters.calendar import Calendar
from sfumato.questions.counters.question import Counter
from sfumato.questions.counters.release import CounterRelease

__all__ = ["Calendar", "Counter", "CounterRelease"]
