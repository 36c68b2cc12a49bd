"""The public names, and where each of them is.

It is read by type checkers, and by the package when a name is first used.
"""

from . import risk as risk
from . import testing as testing
from ._version import __version__ as __version__
from .aggregates import AggregateRelease as AggregateRelease
from .aggregates import MeanRelease as MeanRelease
from .aggregates import SumRelease as SumRelease
from .aggregates import VarianceRelease as VarianceRelease
from .answers.estimate import Estimate as Estimate
from .answers.loading import load as load
from .answers.preview import Preview as Preview
from .answers.question import Question as Question
from .answers.receipt import Receipt as Receipt
from .answers.release import Release as Release
from .choosing import Window as Window
from .choosing import Within as Within
from .choosing import choose as choose
from .choosing import window as window
from .clustering import KMeansRelease as KMeansRelease
from .clustering.local import PrivateKMeans as PrivateKMeans
from .counters import Calendar as Calendar
from .counters import Counter as Counter
from .counters import CounterRelease as CounterRelease
from .data import Source as Source
from .data import source as source
from .domain import Categories as Categories
from .domain import Domain as Domain
from .domain import Interval as Interval
from .domain import Keys as Keys
from .errors import BoundsRequired as BoundsRequired
from .errors import BudgetExceeded as BudgetExceeded
from .errors import DataError as DataError
from .errors import Infeasible as Infeasible
from .errors import InternalError as InternalError
from .errors import LedgerError as LedgerError
from .errors import SfumatoError as SfumatoError
from .errors import UsageError as UsageError
from .histogram import HistogramRelease as HistogramRelease
from .histogram import histogram_accuracy as histogram_accuracy
from .histogram import histogram_epsilon as histogram_epsilon
from .ledger import Account as Account
from .ledger import Ledger as Ledger
from .local.bpm import BPM as BPM
from .local.laplace import MultivariateLaplace as MultivariateLaplace
from .pages import report as report
from .partition.partition import Partition as Partition
from .persons import PersonsRelease as PersonsRelease
from .persons import Recommendation as Recommendation
from .persons import recommend as recommend
from .privacy.allocation import Shares as Shares
from .privacy.guarantee import Guarantee as Guarantee
from .privacy.measures import ZCDP as ZCDP
from .privacy.measures import ApproxDP as ApproxDP
from .privacy.measures import MetricDP as MetricDP
from .privacy.measures import PureDP as PureDP
from .privacy.unit import Unit as Unit
from .publishing.plan import Plan as Plan
from .publishing.previewing import preview as preview
from .publishing.publisher import Publisher as Publisher
from .publishing.stream import Stream as Stream
from .quantiles import QuantilesRelease as QuantilesRelease
from .questions import *
from .risk import Choice as Choice
from .risk import Risk as Risk
