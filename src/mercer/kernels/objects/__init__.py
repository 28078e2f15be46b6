"""Kernels on objects other than vectors: strings, sets, graphs, nodes of a graph, distributions and time series.

Kernels that count features (k-grams, items, subtrees) share ``counts``; string kernels computed pair by pair share
``string_base``. Compiled loops stand beside them in ``_..._loops.py``.
"""
