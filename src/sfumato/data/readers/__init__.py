"""The readers, one file for each engine. ``sfumato.data.registry`` lists them."""
