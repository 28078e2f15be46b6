"""Several classes by code words: binary machines that share one kernel matrix."""
