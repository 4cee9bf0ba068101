import torch

weight = torch.ones(3, requires_grad=True)
hidden = weight * 2
hidden.add_(1)  # <- TCL201
hidden.sum().backward()
print(weight.grad)
