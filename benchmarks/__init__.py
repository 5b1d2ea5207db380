"""How fast everything is, beside its peers: `python -m benchmarks`. Extra `bench` installs the peers."""
