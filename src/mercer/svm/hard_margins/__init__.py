"""Hard margins: whether a hyperplane separates the classes, and the one with the largest margin."""
