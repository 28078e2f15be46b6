"""Kernel machines of rows in parts as fitted estimators."""
