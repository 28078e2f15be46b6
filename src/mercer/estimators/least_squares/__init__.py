"""Machines with squared losses of labels."""
