"""Online classifiers, which learn from one sample at a time."""
