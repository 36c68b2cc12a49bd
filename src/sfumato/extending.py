"""What a question, partitioner, reader or store of your own is written with.

docs/extending.md shows each at work.

The contracts come first, then the parts that answers are made of. Everything here is imported from
where it is defined; nothing is defined here.
"""

from sfumato.answers.counts import Counts, Needs, Summed
from sfumato.answers.estimate import error_probability
from sfumato.answers.preview import CountsPreview, Preview
from sfumato.answers.question import Question
from sfumato.answers.registry import register
from sfumato.answers.release import CountsRelease, Release
from sfumato.basics.numbers import Exactly, sidak
from sfumato.data.columns import text_of
from sfumato.data.reader import BATCH_ROWS, Columns, RowReader
from sfumato.data.registry import register_reader
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Domain
from sfumato.domain.lattice import GridAxis, LabelAxis, Lattice
from sfumato.mechanisms.noise import Law, add_noise, count_law
from sfumato.privacy.allocation import share
from sfumato.privacy.guarantee import Guarantee, Proof, assumptions_of
from sfumato.privacy.measures import CentralMeasure, PureDP, without_delta
from sfumato.privacy.unit import Unit
from sfumato.questions.partition.estimates import Edges, Splits
from sfumato.questions.partition.partitioner import OverAxes
from sfumato.questions.partition.release import Partition
from sfumato.random.bits import Bits

__all__ = [
    "BATCH_ROWS",
    "Bits",
    "CentralMeasure",
    "Columns",
    "Counts",
    "CountsPreview",
    "CountsRelease",
    "Cube",
    "Domain",
    "Edges",
    "Exactly",
    "GridAxis",
    "Guarantee",
    "LabelAxis",
    "Lattice",
    "Law",
    "Needs",
    "OverAxes",
    "Partition",
    "Preview",
    "Proof",
    "PureDP",
    "Question",
    "Release",
    "RowReader",
    "Splits",
    "Summed",
    "Unit",
    "add_noise",
    "assumptions_of",
    "count_law",
    "error_probability",
    "register",
    "register_reader",
    "share",
    "sidak",
    "text_of",
    "without_delta",
]
