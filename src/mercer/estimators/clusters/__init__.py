"""Clusters of samples without labels."""
