"""What held-out decision values add to a machine: probabilities, sets of labels, intervals."""
