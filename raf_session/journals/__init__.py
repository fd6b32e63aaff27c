"""The journals: one module a backend."""
