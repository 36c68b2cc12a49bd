"""How many persons are there, how many rows has each, and which limit on rows to take?

* ``question``: the question and its preview; ``release``: the answer
* ``measured``: what is measured of each person, and which share of the rows a limit keeps
* ``recommendation``: the limit to take
* ``asking``: when to ask it, and what a useful answer costs
"""

from sfumato.questions.persons.asking import advice
from sfumato.questions.persons.question import Persons
from sfumato.questions.persons.recommendation import Recommendation, recommend
from sfumato.questions.persons.release import PersonsRelease

__all__ = ["Persons", "PersonsRelease", "Recommendation", "advice", "recommend"]
