"""Pictures of several tables: each panel can be read by itself."""

from itertools import pairwise

import pyarrow as pa
from matplotlib.text import Annotation

import sfumato as sf
from sfumato.charts import style

LABELS = {"carrier": ["AA", "B6", "DL", "UA"], "origin": ["EWR", "JFK", "LGA"]}
DOMAIN = sf.Domain(
    hour=sf.Interval(0, 24, step=1), **{name: sf.Categories(some) for name, some in LABELS.items()}
)
ROWS = pa.table({"hour": [7, 8], "carrier": ["AA", "UA"], "origin": ["EWR", "LGA"]})


def test_names_of_series_do_not_overlap_in_panels():
    tables = [["carrier", "hour"], ["origin", "hour"], "carrier", "origin"]
    publisher = sf.Publisher(sf.source(ROWS, DOMAIN, name="few"), budget="1")
    release = publisher.release(sf.Tables(tables), epsilon="1")
    ax = release.plot()
    figure = style.figure_of(ax)
    figure.draw_without_rendering()
    named = [text for text in ax.texts if isinstance(text, Annotation)]
    assert [text.get_text() for text in named] == LABELS["carrier"]
    boxes = [text.get_window_extent() for text in named]
    assert all(above.y0 >= below.y1 for above, below in pairwise(boxes))
