"""The command line: validate, render and run PretrainJobs."""
