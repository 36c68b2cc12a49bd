"""Reports: one HTML page about releases. Nothing here can reach data, ledger or publisher.

* ``page``: the whole page; ``front``: what stands first; ``sections``: answers and proofs
* ``tables`` and ``headings``: what sections are made of
* ``decisions``: how epsilon was chosen, and an audit
* ``disclosure``: the document for a registry and for an evaluator
"""
