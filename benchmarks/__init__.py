"""How fast the linter is, beside parsers and other linters on the same files. See `docs/performance.md`."""
