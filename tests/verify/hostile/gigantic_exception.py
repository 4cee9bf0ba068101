# says: ValueError
x = 1
raise ValueError("x" * 100_000_000)
x = 2
