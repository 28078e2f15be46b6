"""Information about fitted machines: the importance of features, and a line in notebooks."""
