"""Regenerates the knowledge tables from an installed torch and numpy: `python -m torchcopylint.knowledge.generate`.

Every row is observed: each operation is called on many sample tensors, and what it returned, shared, wrote and saved
for backward is recorded. This package is the only part of the linter's own code base that imports torch and numpy; the
linter itself never imports this package.
"""
