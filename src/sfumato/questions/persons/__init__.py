"""How many persons are there, how many rows has each, and which limit on rows to take?"""

from sfumato.questions.persons.question import Persons
from sfumato.questions.persons.recommendation import Recommendation, recommend
from sfumato.questions.persons.release import PersonsRelease

__all__ = ["Persons", "PersonsRelease", "Recommendation", "recommend"]
