"""The PretrainJob API: one source for the CRD, its defaults and rules, job configs and reports.

It imports nothing of this project's other packages and only pydantic from outside.
"""
