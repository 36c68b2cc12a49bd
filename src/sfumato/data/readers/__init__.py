"""What reads each kind of table, one file an engine. ``sfumato.data.registry`` lists them."""
