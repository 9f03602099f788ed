"""The operator: observe, plan (pure), apply; the plan also drives the local backend."""
