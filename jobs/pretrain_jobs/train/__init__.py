"""Training: the loop, its data, engine, figures and failures."""
