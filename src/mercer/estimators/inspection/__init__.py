"""What fitted machines tell about themselves: the importance of features, and a line in notebooks."""
