"""Linear machines for several classes in one problem."""
