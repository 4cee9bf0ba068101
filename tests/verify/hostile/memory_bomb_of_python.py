# says: MemoryError|died|time was up
kept = [b"x" * (1 << 26)]
while True:
    kept = kept + kept
    kept.append(bytearray(1 << 27))
