# says: OSError|died of SIGXFSZ
x = 1
with open("mine", "wb") as file:
    for turn in range(1000):
        file.write(b"x" * 1_000_000)
