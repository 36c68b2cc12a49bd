# pyright: strict, reportUnusedExpression=false
# pyright: reportUnknownMemberType=false
"""A notebook's code: type checkers read it, and tests/test_notebook.py runs it cell by cell."""

# %%
import numpy as np

import sfumato as sf

ages = np.column_stack([np.arange(3000) % 90, np.arange(3000) % 7 % 2])
domain = sf.Domain(age=sf.Interval(0, 100, step=1), sex=sf.Categories([0, 1]))
domain

# %%
source = sf.source(ages, domain, name="people")
source

# %%
publisher = sf.Publisher(source, ledger="budget.db", account="notebook", budget="5")
publisher.preview(sf.Histogram("age", bins=10), epsilon="0.5")

# %%
h = publisher.release(sf.Histogram("age", bins=10), epsilon="0.5")
h

# %%
h.mean()

# %%
h.plot()

# %%
again = publisher.release(sf.Histogram("age", bins=10), epsilon="0.5")
again

# %%
partition = publisher.release(sf.AutoPartitioner("age"), epsilon="0.5")
partition

# %%
axes = partition.plot()
figure = axes.get_figure(root=True)
assert figure is not None
figure.savefig("partition.png")
axes

# %%
choice = sf.choose(np.array([1.0, 2.0, 3.0, 10.0]), size=3, query="mean", risk="1/3")
choice

# %%
choice.plot()

# %%
window = sf.window(
    sf.Histogram("age", bins=10),
    domain=domain,
    unit=source.unit,
    accuracy=sf.Within(20),
    risk=sf.Risk(prior=0.01, posterior=0.05),
)
window

# %%
window.plot()

# %%
h.to_csv("ages.csv")
h.to_excel("ages.xlsx")
h.to_pandas()
