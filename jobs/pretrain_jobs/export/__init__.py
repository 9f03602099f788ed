"""Export: the trained model as a Hugging Face directory that is known to load."""
