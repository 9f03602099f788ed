"""What a model learns to predict: how samples are cut, masked and labelled when they are formed."""
