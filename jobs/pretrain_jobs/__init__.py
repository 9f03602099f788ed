"""What runs inside the pods: one command per stage, `python -m pretrain_jobs <stage>`."""
