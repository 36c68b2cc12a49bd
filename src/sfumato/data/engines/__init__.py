"""Counting where the data lie: one generator of SQL for every engine that speaks it.

``count_query`` turns what is to be counted (``Needs``) under a ``Unit`` into one query of an
engine's table. The query returns occupied cells only, and ``CountQuery.cube`` makes a cube of them,
the same one, bit for bit, that a scan of the same rows makes wherever no person's rows are cut.

An engine is a ``Dialect`` (``dialect.py``): how it writes literals, reads its columns' types,
hashes, and numbers copies. Everything else is written once:

* ``readings``: the columns in the forms that cells are made of, such as doubles and days;
* ``cells``, ``labels``, ``calendar``, ``zones``: the cell of a row on an axis, by comparison with
  public edges and labels;
* ``persons``: which of a person's rows are counted;
* ``query``: the query; ``per_person``: what is counted of persons; ``groups``: a cube of it.

The secret that chooses rows is never text of a query: the dialect names a relation that holds it.
"""
