#!/usr/bin/env python
# coding: utf-8

# # Homework 2: linear regression by hand
#
# Exported from the notebook. Fit `y = X w + b` with gradient descent, without `torch.optim`.

# In[1]:


import numpy as np
import torch

torch.manual_seed(42)


# ## 1. The data
#
# 100 points with three features. `true_w` is what we hope to find.

# In[2]:


true_w = torch.tensor([[1.5], [-2.0], [0.5]])
true_b = 0.7
X = torch.randn(100, 3)
y = X @ true_w + true_b + 0.1 * torch.randn(100, 1)

X_train, X_test = X[:80], X[80:]
y_train, y_test = y[:80], y[80:]


# In[3]:


w = torch.randn(3, 1, requires_grad=True)
b = torch.zeros(1)
b.require_grad = True  # expect: TCL606


def model(x):
    return x @ w + b


def mse(pred, target):
    return ((pred - target) ** 2).mean()


# ## 2. Gradient descent

# In[4]:


lr = 0.05
losses = []
for step in range(100):
    loss = mse(model(X_train), y_train)
    loss.backward()
    w.data -= lr * w.grad  # expect: TCL103
    if b.grad is not None:
        b.data -= lr * b.grad  # expect: TCL103
        b.grad.zero_()
    w.grad.zero_()
    losses.append(loss.item())

print("first and last loss:", round(losses[0], 3), round(losses[-1], 3))


# In[5]:


outputs = model(X_test)
predictions = outputs.data.numpy()  # expect: TCL104
residuals = y_test.numpy()
residuals -= predictions  # expect: TCL402
print("largest residual:", np.abs(residuals).max().round(3))
print("test loss:", round(mse(model(X_test), y_test).item(), 3))


# ## 3. With weight decay
#
# The same with a penalty on `w`, and without `.data`.

# In[6]:


for step in range(20):
    loss = mse(model(X_train), y_train) + 0.01 * w.pow(2).sum()
    loss.backward()
    w -= lr * w.grad  # expect: TCL201
    w.grad.zero_()

print("w:", w.detach().flatten().tolist())
print("b:", b.item())
