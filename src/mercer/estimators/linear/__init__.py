"""Linear machines, whose model is a weight for each feature."""
