"""How the optimum is found."""
