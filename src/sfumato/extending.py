"""What a question, partitioner, reader or store of your own is written with.

docs/extending.md shows each at work.

The contracts come first, then the parts that answers are made of. Everything here is imported from
where it is defined; nothing is defined here.
"""

from sfumato.answers import (
    Counts,
    CountsPreview,
    CountsRelease,
    Needs,
    Preview,
    Question,
    Release,
    Summed,
    error_probability,
    register,
)
from sfumato.basics import Exactly, sidak
from sfumato.data.columns import text_of
from sfumato.data.reader import BATCH_ROWS, Columns, RowReader
from sfumato.data.registry import register_reader
from sfumato.domain import Cube, Domain, GridAxis, LabelAxis, Lattice
from sfumato.mechanisms import Law, add_noise, count_law
from sfumato.privacy import (
    CentralMeasure,
    Guarantee,
    Proof,
    PureDP,
    Unit,
    assumptions_of,
    share,
    without_delta,
)
from sfumato.questions.partition.estimates import Edges, Splits
from sfumato.questions.partition.release import OverAxes, Partition
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
