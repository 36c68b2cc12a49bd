"""How many persons are there, how many rows has each, and which limit on rows to take?"""

from sfumato.persons.question import Persons
from sfumato.persons.recommendation import Recommendation, recommend
from sfumato.persons.release import PersonsRelease

__all__ = ["Persons", "PersonsRelease", "Recommendation", "recommend"]
