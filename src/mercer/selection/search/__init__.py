"""The search for parameters by cross-validation: grids, candidates, scores, and the base classes of all searches."""
