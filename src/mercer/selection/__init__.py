"""Choosing models: grids that share kernel matrices, calibration, leave-one-out, paths, evaluation."""
