"""What reads each kind of table: one file an engine or format. ``sfumato.data.registry`` lists them."""
