"""Tests of summarizers, over conversations with planted facts and a local server."""
