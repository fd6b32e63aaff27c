"""Tests of what is done with whole sessions."""
