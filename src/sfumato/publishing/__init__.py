"""Where a source, a ledger account and questions meet: the only room that spends and publishes.

* ``publisher``: charge, count, publish; ``account``: at whose expense, and its receipts
* ``counting``: counts of a source; ``answering``: from a charge to stored answers
* ``previews``: cost and accuracy without any data
* ``plan``: several questions at once; ``plan_file``: read from TOML, and written as TOML;
  ``plan_choice`` and ``divisions``: noise and shares that are picked for it
* ``stream``: a counter, step by step; ``verifying``: is a release the one that was published?
"""
