"""Questions, what they may ask of the data, their previews and their releases."""
