"""Machines that order the samples: ordered classes, rankings, survival times."""
