"""Running totals that are published step by step: the question, its mechanisms and its calendar."""

from sfumato.counters.calendar import Calendar
from sfumato.counters.question import Counter
from sfumato.counters.release import CounterRelease

__all__ = ["Calendar", "Counter", "CounterRelease"]
