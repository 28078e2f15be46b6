"""Benchmarks that asv runs for each commit: seconds of mercer, and its time as a share of scikit-learn's."""
