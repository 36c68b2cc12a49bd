"""Running totals that are published step by step, exactly and durably: the question, its machines, its steps."""

from sfumato.counters.calendar import Calendar
from sfumato.counters.question import Counter, CounterRelease

__all__ = ["Calendar", "Counter", "CounterRelease"]
