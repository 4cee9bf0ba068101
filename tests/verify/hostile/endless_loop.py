# says: time was up
while True:
    pass
