"""Evaluation: fine-tuning on labelled tasks, from trained and from random weights."""
