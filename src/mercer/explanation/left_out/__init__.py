"""Which training rows made a prediction: changes of decision functions when a row is left out."""
