"""Which parts of strings, graphs and sets made a prediction."""
