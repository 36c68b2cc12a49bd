"""How many persons are there, how many rows has each, and which limit on rows to take?

* ``question``: the question, its preview, and when to ask it; ``release``: the answer
* ``measured``: what is measured of each person, and which share of the rows a limit keeps
* ``recommendation``: the limit to take
"""

from sfumato.questions.persons.question import Persons, advice
from sfumato.questions.persons.recommendation import Recommendation, recommend
from sfumato.questions.persons.release import PersonsRelease

__all__ = ["Persons", "PersonsRelease", "Recommendation", "advice", "recommend"]
