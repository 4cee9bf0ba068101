# says: not observed|cannot be compared
import torch


def forever():
    while True:
        pass


torch.threading.Thread(target=forever, daemon=False).start()
x = torch.ones(2)
