"""What known operations do: of torch, NumPy, `copy` and Python's containers."""
