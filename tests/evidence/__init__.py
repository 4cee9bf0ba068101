"""What the linter says about public code, judged by reading: see `README.md`."""
