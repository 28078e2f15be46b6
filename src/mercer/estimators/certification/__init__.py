"""Certificates of fitted models, of mercer or scikit-learn: how far each is from the optimum of its own problem."""
