"""Running totals that are published step by step: the question, its mechanisms and its calendar."""

from sfumato.questions.counters.calendar import Calendar
from sfumato.questions.counters.question import Counter
from sfumato.questions.counters.release import CounterRelease

__all__ = ["Calendar", "Counter", "CounterRelease"]
