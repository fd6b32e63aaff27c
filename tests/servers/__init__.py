"""Real servers for the tests: named by environment, else private instances.

Each module gives `server()`, started once for the whole run on first use, and a class
for tests that kill and restart one of their own.
"""
