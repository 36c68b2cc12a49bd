"""Where a source, a ledger account and questions meet: the only room that spends and publishes."""
