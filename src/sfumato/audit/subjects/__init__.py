"""What is audited: questions by their examples, counters, devices, and the whole path.

* ``subject``: a subject, and small data that several share
* ``examples``: questions; ``people``: counts of people and their rows
* ``machines``: devices, counters and publishers

A new question needs nothing here but its own ``examples``.
"""

from functools import cache
from itertools import chain

from sfumato.answers import listed_question, questions
from sfumato.audit.subjects import examples, machines
from sfumato.audit.subjects.subject import Subject
from sfumato.basics import listed

__all__ = ["Subject", "every", "library"]


@cache
def library() -> tuple[Subject, ...]:
    """Return the library's own subjects, in the order in which they are shown."""
    kinds = map(listed_question, listed("sfumato.questions").values())
    return tuple(chain(examples.subjects(kinds), machines.subjects()))


def every() -> list[Subject]:
    """Return all subjects: the library's own, then the examples of questions of other packages."""
    own = set(map(listed_question, listed("sfumato.questions").values()))
    return [*library(), *examples.subjects(kind for kind in questions() if kind not in own)]
