# says: opening
x = 1
with open("VICTIM/written", "w") as file:
    file.write("mine")
