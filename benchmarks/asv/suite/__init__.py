"""Benchmarks that asv runs for each commit: seconds of mercer, and its speed as a multiple of scikit-learn's."""
