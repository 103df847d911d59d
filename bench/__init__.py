"""One workload, every system: run `python -m bench` from the root of the repository."""
