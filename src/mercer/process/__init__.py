"""Gaussian processes: the marginal likelihood and its maximisation over hyper-parameters."""
