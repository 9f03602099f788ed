"""One job that trains for half an hour while something is killed every two minutes: `make soak`.

`run` touches the cluster; what it has seen is judged by pure functions, one module a subject, which
answer with a sentence for each thing that is wrong. The bounds are in `bounds`.
"""
