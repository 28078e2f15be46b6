"""Exact updates: the solution of a problem from that of a problem with a few samples more or fewer."""
