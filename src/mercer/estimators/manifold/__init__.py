"""Machines for partly labelled samples, smooth along a graph of all samples."""
