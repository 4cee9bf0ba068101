"""Reading and writing memory: who shares it, what stands in fields and containers, what becomes of a write."""
