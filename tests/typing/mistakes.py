# pyright: strict
"""What a user gets wrong, one mistake a line: a type checker reports these lines and no others.

Never run.
"""

from __future__ import annotations

import sfumato as sf

domain = sf.Domain(age=sf.Interval(0, 100, step=1))
people = sf.source("people.parquet", domain, person="id", rows_per_person=4)
publisher = sf.Publisher(people, ledger="budget.db", account="people", budget="3")
histogram = publisher.release(sf.Histogram("age", bins=10), epsilon="0.5")
partition = publisher.release(sf.AutoPartitioner(), epsilon="0.5")
several = publisher.release([sf.Histogram("age")], epsilon="0.5")
preview = publisher.preview(sf.Histogram("age"), epsilon="0.5")

histogram.meen()  # mistake: a name that the answer does not have
partition.mean("age")  # mistake: a name of another kind of answer
several.values  # mistake: the answers are several  # noqa: B018
preview.values  # mistake: a preview holds no numbers of the data  # noqa: B018
sf.Histgram("age")  # mistake: a name that the library does not have
sf.Histogram(5)  # mistake: an axis is named by text
sf.Histogram("age", bin=10)  # mistake: a field that the question does not have
sf.Histogram("age", selection="stable")  # mistake: a rule that there is not
sf.UniformPartitioner(partitions="many")  # mistake: a number is asked for
sf.KMeans(5, method="lloyd")  # mistake: a method that there is not
sf.source("people.parquet", domain, neighbours="swap")  # mistake: a relation that there is not
sf.load(7)  # mistake: a path is asked for
publisher.release(sf.Histogram("age"), "1")  # mistake: privacy parameters are named
publisher.release(sf.Histogram("age"), epsilom="1")  # mistake: a misspelt keyword
publisher.release("age", epsilon="1")  # mistake: text is no question
publisher.release(sf.Counter(horizon=9), epsilon="1")  # mistake: a counter is opened, not asked
publisher.open(sf.Histogram("age"), epsilon="1")  # mistake: a histogram is released, not opened
wrong: sf.Partition = histogram  # mistake: another kind of answer
