"""What is asked and what is answered: the question, what it may ask of the data, its preview and its release."""
