"""Model selection: searches that share kernel matrices, calibration, leave-one-out, paths in C, evaluation."""
