"""Benchmarks beside the peers that are installed: `python -m benches`."""
