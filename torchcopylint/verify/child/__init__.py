"""A program of its own that runs scripts under torch and says what it saw. Nothing in the linter's process imports it.

It is started by path (`python -I .../child/__main__.py`), so that the environment that has torch need not have
torchcopylint, and its modules import each other only relatively.
"""
