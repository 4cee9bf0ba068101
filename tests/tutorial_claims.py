"""What the linter must say about 58 programs that stand for 58 claims of five tutorials on copying in PyTorch.

Written before the engine was run on them: a claim that fails shows a fault of the engine, or an error here that needs
an argument about the program, not about the engine's output.

A claim whose program shows no misuse is a test too: silence is expected, and the reason says what could tempt a rule
to speak. `prints`, `warns` and `raises` are what torch 2.13 does with the program after `torch.manual_seed(0)`; object
addresses are left out.

This file is longer than the project's limit for a module because it is one table, read from top to bottom.
"""

from __future__ import annotations

from dataclasses import dataclass

Place = tuple[int, str]
"""A row of a program (1-based) and the code that is reported there."""

NON_LEAF_GRAD = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed."
LEAF_WRITE = "a leaf Variable that requires grad is being used in an in-place operation."
NO_HISTORY = "element 0 of tensors does not require grad and does not have a grad_fn"

FIRST_RULES = frozenset(
    f"TCL{number}"
    for number in (
        *(101, 102, 103, 104, 105, 106, 201, 301, 302, 303, 308),
        *(401, 402, 501, 505, 602, 605, 606, 701, 706),
    )
)
"""The rules that `expected` speaks of. `later` speaks of all others."""


@dataclass(frozen=True, slots=True)
class Raised:
    """How a program ends when it does not run through: the row, the exception's type and its message's beginning."""

    row: int
    type: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One program and what is expected of it.

    `expected` is every finding of the first rules with default settings, in order of rows: errors and warnings of high
    or medium confidence, no `info`. Empty means silence. `reason` is one sentence, for silence too. `later` is what
    rules that came after the first ones add; it falls due when the rule has a page and is shown by default. `prints`
    is the output without white space around it, `warns` is row and beginning of each warning.
    """

    id: str
    program: str
    expected: tuple[Place, ...] = ()
    reason: str
    later: tuple[Place, ...] = ()
    prints: str = ""
    warns: tuple[tuple[int, str], ...] = ()
    raises: Raised | None = None


CLAIMS = (
    Claim(
        id="C1",
        program="""\
import torch

a = torch.rand(4)
b = a
a[2] = 5
print(b is a, b[2].item())
""",
        reason="After the write only the values of `b` are read, `is` reads none, so nobody counts on two versions.",
        prints="True 5.0",
    ),
    Claim(
        id="C2",
        program="""\
import torch

a = torch.tensor([1.0, 2.0], requires_grad=True)
b = a.clone()
print(b.data_ptr() == a.data_ptr(), b.grad_fn, b.is_leaf)
""",
        reason="A clone is fresh and nothing is written; `data_ptr()` is not `.data` and `.grad_fn` is not `.grad`.",
        prints="False <CloneBackward0> False",
    ),
    Claim(
        id="C3",
        program="""\
import torch

print(torch.ones(1, requires_grad=True).clone())
""",
        reason="Printing a fresh clone shares nothing and writes nothing.",
        prints="tensor([1.], grad_fn=<CloneBackward0>)",
    ),
    Claim(
        id="C4",
        program="""\
import torch

x2 = torch.tensor([1.0, 2.0], requires_grad=True)
x4 = torch.zeros(2)
x4.copy_(x2)
print(x4.grad_fn, x4.data_ptr() == x2.data_ptr())
(x4 * 3).sum().backward()
print(x2.grad, x4.is_leaf)
""",
        reason="The target of `copy_` does not require grad before the write, and the only `.grad` read is a leaf's.",
        prints="<CopyBackwards> False\ntensor([3., 3.]) False",
    ),
    Claim(
        id="C5",
        program="""\
import torch

x = torch.ones(2, requires_grad=True)
y = x * 2
d = y.detach()
d[0] = 9
print(y, d.requires_grad, d.grad_fn, d.untyped_storage().data_ptr() == y.untyped_storage().data_ptr())
""",
        expected=((6, "TCL303"),),
        reason="The item assignment to the detached `d` changes `y`, which is printed afterwards.",
        prints="tensor([9., 2.], grad_fn=<MulBackward0>) False None True",
    ),
    Claim(
        id="C6",
        program="""\
import torch

x2 = torch.ones(2, requires_grad=True) * 2
x4 = x2.detach_()
print(x4 is x2, id(x4) == id(x2), x2.requires_grad, x2.grad_fn)
""",
        expected=((4, "TCL301"),),
        reason="`x4` is `x2` itself, so binding the result of `detach_()` cut `x2` out of the graph as well.",
        prints="True True False None",
    ),
    Claim(
        id="C7",
        program="""\
import torch

a = torch.ones(2, requires_grad=True)
d = a.detach()
a.sum().backward()
torch.optim.SGD([a], lr=0.1).step()
print(d)
""",
        reason="Nothing is written through `d`; that `step()` moves it is the snapshot rule's business.",
        later=((4, "TCL702"),),
        prints="tensor([0.9000, 0.9000])",
    ),
    Claim(
        id="C8",
        program="""\
import torch

print(torch.ones(1, requires_grad=True).clone().requires_grad, torch.ones(1).clone().requires_grad)
with torch.no_grad():
    print(torch.ones(1, requires_grad=True).clone().requires_grad)
""",
        reason="Only flags of fresh clones are read.",
        prints="True False\nFalse",
    ),
    Claim(
        id="C9",
        program="""\
import torch

a = torch.ones(2, requires_grad=True)
b = a.detach().clone().requires_grad_(True)
print(b, b.is_leaf, b.data_ptr() == a.data_ptr())
""",
        reason="`detach().clone().requires_grad_()` is the recommended way to an independent leaf.",
        prints="tensor([1., 1.], requires_grad=True) True False",
    ),
    Claim(
        id="C10",
        program="""\
import torch
import torch.nn as nn

torch.manual_seed(0)
x = torch.tensor([1.0, 2.0], requires_grad=True)
cx = x.clone()
f = nn.Linear(2, 1)
f(x).backward()
print(x.grad, cx.requires_grad)
print(cx.grad)
""",
        expected=((10, "TCL308"),),
        reason="`cx` is computed from a leaf and never told to retain its gradient, so its `.grad` is None.",
        prints="tensor([-0.0053,  0.3793]) True\nNone",
        warns=((10, NON_LEAF_GRAD),),
    ),
    Claim(
        id="C11",
        program="""\
import copy

import torch
import torch.nn as nn

a = torch.ones(2, requires_grad=True)
a.grad = torch.ones(2)
a.foo = 1
b = a.clone()
d = copy.deepcopy(a)
print(b.grad_fn, hasattr(b, "foo"), d.is_leaf, d.requires_grad, d.grad, d.foo)
print(type(nn.Parameter(torch.ones(1)).clone()).__name__, type(copy.deepcopy(nn.Parameter(torch.ones(1)))).__name__)
""",
        reason="The deep copy of a leaf is a leaf with its own gradient, and `foo` is no misspelt `requires_grad`.",
        prints="<CloneBackward0> False True True tensor([1., 1.]) 1\nTensor Parameter",
    ),
    Claim(
        id="C12",
        program="""\
import copy

import torch

a = torch.ones(2)
b = copy.copy(a)
b[0] = 7
print(a, b is a, b.data_ptr() == a.data_ptr())
x = torch.ones(2, requires_grad=True)
y = copy.copy(x)
print(y.is_leaf, y.requires_grad)
z = x * 2
w = copy.copy(z)
print(w.grad_fn)
""",
        reason=(
            "None of the first rules is about `copy.copy`, and the rule to come has a witness twice:"
            " `b` is written while `a` is read, `w` loses its history; `y` comes to no harm."
        ),
        later=((6, "TCL310"), (13, "TCL310")),
        prints="tensor([7., 1.]) False True\nTrue True\nNone",
    ),
    Claim(
        id="C13",
        program="""\
import torch

a = torch.ones(2, 3).t()
print(a.stride(), a.clone().stride(), a.clone(memory_format=torch.contiguous_format).stride())
e = torch.ones(3, 1).expand(3, 4)
print(e.stride(), e.clone().stride())
""",
        reason="Strides are metadata, and neither the transposed nor the expanded tensor is written.",
        prints="(1, 3) (1, 3) (2, 1)\n(1, 0) (4, 1)",
    ),
    Claim(
        id="C14",
        program="""\
import torch

a = torch.ones(1000)
b = a.clone()
print(a.untyped_storage().nbytes(), b.untyped_storage().nbytes(), b.data_ptr() != a.data_ptr())
""",
        reason="Asking a storage for its size writes nothing, and a clone has a storage of its own.",
        prints="4000 4000 True",
    ),
    Claim(
        id="C15",
        program="""\
import torch

y = torch.ones(2, requires_grad=True)
o = torch.optim.SGD([y], lr=0.1)
for i in range(3):
    o.zero_grad()
    l = (y * 2).sum()
    l.backward()
    o.step()
print(y)
""",
        reason="The loss is rebuilt from the leaf in every turn and kept by nobody: the right way to train.",
        prints="tensor([0.4000, 0.4000], requires_grad=True)",
    ),
    Claim(
        id="C16",
        program="""\
import torch

y = torch.ones(2, 3, requires_grad=True)
p = y
(y * y).sum().backward()
g = p.grad.clone()
y = y.detach()
y[0, 0] = 0.5
print(torch.equal(g, p.grad))
print(p)
""",
        expected=((8, "TCL303"),),
        reason="Rebinding `y` to its detached alias leaves the leaf in `p`, which the write changes and a print reads.",
        prints=("True\ntensor([[0.5000, 1.0000, 1.0000],\n        [1.0000, 1.0000, 1.0000]], requires_grad=True)"),
    ),
    Claim(
        id="C17",
        program="""\
import torch

x = torch.rand(2, 3)
y = torch.ones(2, 3, requires_grad=True)
o = torch.optim.SGD([y], lr=0.1)
(x + y).sum().backward()
o.step()
print(y)
""",
        reason="One plain training step: the optimizer is meant to write `y`, and no other name holds its memory.",
        prints=("tensor([[0.9000, 0.9000, 0.9000],\n        [0.9000, 0.9000, 0.9000]], requires_grad=True)"),
    ),
    Claim(
        id="C18",
        program="""\
import torch

y = torch.ones(2, requires_grad=True)
d = y.detach()
d[0] = 0.5
print(y)
""",
        expected=((5, "TCL303"),),
        reason="The item assignment to the detached `d` rewrites the leaf `y`, which is printed afterwards.",
        prints="tensor([0.5000, 1.0000], requires_grad=True)",
    ),
    Claim(
        id="C19",
        program="""\
import torch

x = torch.rand(2, requires_grad=True)
y = x.data
y.mul_(0)
print(x, x._version, y._version, y.requires_grad)
d = x.detach()
d.add_(1)
print(x._version, d._version)
""",
        expected=((5, "TCL103"),),
        reason=(
            "The leaf is written through `.data` with no backward pending, which settles line 4 as well;"
            " after the write through `d` only version counters are read, no values."
        ),
        prints="tensor([0., 0.], requires_grad=True) 0 1 False\n1 1",
    ),
    Claim(
        id="C20",
        program="""\
import torch

x = torch.rand(2, requires_grad=True)
x.data[0] = 0.5
print(x)
""",
        expected=((4, "TCL103"),),
        reason="An item of a leaf is assigned through `.data` with no backward pending, and `[0]` fits a 1-d tensor.",
        prints="tensor([0.5000, 0.7682], requires_grad=True)",
    ),
    Claim(
        id="C21",
        program="""\
import torch

y = torch.ones(2, requires_grad=True) * 2
z = y.detach_()
print(z is y, z)
""",
        expected=((4, "TCL301"),),
        reason="`z` is `y` itself, so what looks like a detached second tensor cut `y` out of the graph.",
        prints="True tensor([2., 2.])",
    ),
    Claim(
        id="C22",
        program="""\
import torch

y = torch.ones(2, requires_grad=True)
y.detach_()
y[0] = 0.5
print(y)
""",
        reason="`detach_()` as a statement on the only name is its intended use, and it makes the later write legal.",
        prints="tensor([0.5000, 1.0000])",
    ),
    Claim(
        id="C23",
        program="""\
import torch

y = torch.ones(2, requires_grad=True) * 2
d = y.detach()
print(d is y, y.grad_fn)
y.detach_()
print(y.grad_fn)
""",
        reason="The result of `detach_()` goes nowhere, `y` is no view, and `d` has no history that could be cut.",
        prints="False <MulBackward0>\nNone",
    ),
    Claim(
        id="C24",
        program="""\
import torch

a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
b = a.clone()
(a * 2).sum().backward()
print(a.grad)
(b * 3).sum().backward()
print(a.grad)
print(b.grad)
""",
        expected=((9, "TCL308"),),
        reason="`b` is not a leaf, so backward adds up in `a.grad` and leaves `b.grad` None.",
        prints="tensor([2., 2., 2.])\ntensor([5., 5., 5.])\nNone",
        warns=((9, NON_LEAF_GRAD),),
    ),
    Claim(
        id="C25",
        program="""\
import torch

a = torch.ones(2, dtype=torch.float16)
print(a.clone().dtype, a.clone().shape)
""",
        reason="Only metadata of fresh clones is read.",
        prints="torch.float16 torch.Size([2])",
    ),
    Claim(
        id="C26",
        program="""\
import torch

print(torch.zeros(2, 3).copy_(torch.arange(3.0))[1])
torch.zeros(2).copy_(torch.zeros(3))
""",
        reason="It raises because of shapes, which no rule is about; `copy_` is in place, so no result is discarded.",
        prints="tensor([0., 1., 2.])",
        raises=Raised(4, "RuntimeError", "The size of tensor a (2) must match the size of tensor b (3)"),
    ),
    Claim(
        id="C27",
        program="""\
import torch

a = torch.ones(3, requires_grad=True)
b = torch.empty_like(a)
c = b
d = b.copy_(a)
print(d is b, b.grad_fn, c is b)
""",
        reason="`empty_like` does not inherit `requires_grad`, and after the write no name's values are read.",
        prints="True <CopyBackwards> True",
    ),
    Claim(
        id="C28",
        program="""\
import torch

a = torch.ones(3, requires_grad=True)
a.copy_(torch.zeros(3))
""",
        expected=((4, "TCL201"),),
        reason="`copy_` writes a leaf that requires grad with grad mode on, which raises.",
        raises=Raised(4, "RuntimeError", LEAF_WRITE),
    ),
    Claim(
        id="C29",
        program="""\
import torch

a = torch.ones(3, requires_grad=True)
b = a.detach()
(b * 3).sum().backward()
""",
        reason="Nothing is written; that the loss lost its history on the way is for the rule on broken graphs.",
        later=((4, "TCL307"),),
        raises=Raised(5, "RuntimeError", NO_HISTORY),
    ),
    Claim(
        id="C30",
        program="""\
import torch

a = torch.ones(2, requires_grad=True)
b = a.detach().requires_grad_()
(b * 3).sum().backward()
print(a.grad, b.grad)
with torch.no_grad():
    b[0] = 7
print(a)
a.data = torch.zeros(2)
print(b)
""",
        expected=((8, "TCL303"), (10, "TCL103")),
        reason=(
            "The write to `b` changes `a`, which is printed, and `no_grad` makes it legal without making it private;"
            " `a.data` is then bound to a fresh tensor; `b` is a leaf, so reading `b.grad` is right."
        ),
        prints="None tensor([3., 3.])\ntensor([7., 1.], requires_grad=True)\ntensor([7., 1.], requires_grad=True)",
    ),
    Claim(
        id="C31",
        program="""\
import torch

x = torch.ones(2, requires_grad=True)
print(x.data.data_ptr() == x.detach().data_ptr(), x.data.requires_grad)
x.data.add_(1)
print(x._version)
x.detach().add_(1)
print(x._version)
print(hasattr(torch.tensor, "data"))
""",
        expected=((4, "TCL104"), (5, "TCL103")),
        reason=(
            "Two `.data` reads in one statement are one finding and the write is another;"
            " the chained `x.detach().add_(1)` can only mean to change `x`, whose values nobody reads again."
        ),
        prints="True False\n0\n1\nFalse",
    ),
    Claim(
        id="C32",
        program="""\
import torch

x = torch.ones(2, requires_grad=True)
y = x.sigmoid()
y.detach().zero_()
y.sum().backward()
""",
        reason=(
            "A write chained to `detach()` with no second name is a deliberate change of `y`;"
            " that backward still needs the old `y` is for the rule on saved tensors."
        ),
        later=((5, "TCL202"),),
        raises=Raised(
            6,
            "RuntimeError",
            "one of the variables needed for gradient computation has been modified by an inplace operation",
        ),
    ),
    Claim(
        id="C33",
        program="""\
import torch

a = torch.ones(2, requires_grad=True)
p = a.clone().detach()
q = a.detach().clone()
print(
    p.requires_grad,
    q.requires_grad,
    p.data_ptr() == a.data_ptr(),
    q.data_ptr() == a.data_ptr(),
    p.grad_fn,
    q.grad_fn,
)
""",
        reason="Both orders give an independent tensor; that the first builds a graph node in vain is worth an info.",
        later=((4, "TCL901"),),
        prints="False False False False None None",
    ),
    Claim(
        id="C34",
        program="""\
import torch

a = torch.ones(2, requires_grad=True)
a.add_(1)
""",
        expected=((4, "TCL201"),),
        reason="`add_` writes a leaf that requires grad with grad mode on, which raises.",
        raises=Raised(4, "RuntimeError", LEAF_WRITE),
    ),
    Claim(
        id="C35",
        program="""\
import torch
import torch.nn as nn

a = nn.Parameter(torch.ones(2))
a.data.zero_()
print(a, a._version)
with torch.no_grad():
    a.fill_(2)
    print(a, a._version)
nn.init.zeros_(a)
print(a)
""",
        expected=((5, "TCL103"),),
        reason=(
            "The parameter is written through `.data` outside any initialising function;"
            " the two writes after it, under `no_grad` and by `nn.init`, are the modern forms."
        ),
        prints=(
            "Parameter containing:\ntensor([0., 0.], requires_grad=True) 0\n"
            "Parameter containing:\ntensor([2., 2.], requires_grad=True) 1\n"
            "Parameter containing:\ntensor([0., 0.], requires_grad=True)"
        ),
    ),
    Claim(
        id="C36",
        program="""\
import torch
import torch.nn as nn

A = nn.Parameter(torch.zeros(2))
B = nn.Parameter(torch.ones(2))
with torch.no_grad():
    A.copy_(B)
    print(A, A.requires_grad, A.is_leaf)
""",
        reason="`copy_` under `no_grad` is the right way to give one parameter the values of another.",
        prints="Parameter containing:\ntensor([1., 1.], requires_grad=True) True True",
    ),
    Claim(
        id="C37",
        program="""\
import torch

a = torch.rand(4)
b = a
print(id(a) == id(b))
""",
        reason="Two names on one tensor are harmless while nothing is written.",
        prints="True",
    ),
    Claim(
        id="C38",
        program="""\
import torch

a = torch.rand(4)
b = a
a = torch.rand(4)
print(b is a)
""",
        reason="Rebinding `a` writes no memory, so `b` keeps the old tensor unchanged.",
        prints="False",
    ),
    Claim(
        id="C39",
        program="""\
import copy

import torch

a = [[1, 2], 3]
b = copy.copy(a)
c = copy.deepcopy(a)
a[0][0] = 0
print(b, c)
""",
        reason="Lists of numbers are no tensors, though the file imports torch and `copy.copy` shares the inner list.",
        prints="[[0, 2], 3] [[1, 2], 3]",
    ),
    Claim(
        id="C40",
        program="""\
import torch

x = torch.ones(2)
i = id(x)
p = x.data_ptr()
x = x + 5
print(id(x) == i, x.data_ptr() == p)
p = x.data_ptr()
x += 5
print(x.data_ptr() == p)
""",
        reason="`x` does not require grad and is the only holder of its memory; addresses are numbers, not aliases.",
        prints="False False\nTrue",
    ),
    Claim(
        id="C41",
        program="""\
import numpy as np
import torch

a = np.array([1.0, 2.0], dtype=np.float32)
t = torch.Tensor(a)
u = torch.tensor(a)
a[0] = 9
print(t, u)
x = torch.ones(2)
y = torch.Tensor(x)
print(y.data_ptr() == x.data_ptr())
s = torch.tensor(x)
print(s.data_ptr() == x.data_ptr())
""",
        expected=((7, "TCL401"),),
        reason="`torch.Tensor` shares a float32 array: the write to `a` changes `t`, which is printed; "
        "`u` is a copy, and what `x` and `y` share is never written.",
        later=((12, "TCL902"),),
        prints="tensor([9., 2.]) tensor([1., 2.])\nTrue\nFalse",
        warns=((12, "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone()"),),
    ),
    Claim(
        id="C42",
        program="""\
import numpy as np
import torch

a = np.array([1, 2])
t = torch.from_numpy(a)
u = torch.as_tensor(a)
v = torch.as_tensor(a, dtype=torch.float32)
w = torch.as_tensor([1, 2])
a[0] = 9
print(t, u, v)
""",
        expected=((9, "TCL401"),),
        reason="The write to `a` changes `t` and `u`, which are printed: one storage and one place, hence one finding.",
        prints="tensor([9, 2]) tensor([9, 2]) tensor([1., 2.])",
    ),
    Claim(
        id="C43",
        program="""\
import torch

x = torch.ones(2, requires_grad=True)
y = x.clone()
y.sum().backward()
print(x.grad)
print(y.grad)
""",
        expected=((7, "TCL308"),),
        reason="`y` is not a leaf and does not retain its gradient, so `y.grad` is None where `x.grad` is filled.",
        prints="tensor([1., 1.])\nNone",
        warns=((7, NON_LEAF_GRAD),),
    ),
    Claim(
        id="C44",
        program="""\
import torch

x = torch.ones(2, requires_grad=True)
print(x.detach().requires_grad)
""",
        reason="A detached alias is asked for a flag and dropped.",
        prints="False",
    ),
    Claim(
        id="C45",
        program="""\
import torch

x = torch.ones(2, requires_grad=True)
y = x.clone()
y.grad
""",
        expected=((5, "TCL308"),),
        reason="Reading `.grad` of a non-leaf warns even where the value is dropped, and no backward has to run first.",
        warns=((5, NON_LEAF_GRAD),),
    ),
    Claim(
        id="C46",
        program="""\
import torch

x = torch.zeros(3, 2)
y = x.transpose(0, 1)
y[0, 0] = 12
print(x[0, 0].item())
z = x.transpose(0, 1).contiguous()
z[0, 0] = 5
print(x[0, 0].item())
w = torch.zeros(3, 1).transpose(0, 1).contiguous()
o = torch.zeros(3)
print(o.contiguous() is o)
q = torch.zeros(3, 1)
w = q.transpose(0, 1).contiguous()
w[0, 0] = 5
print(q[0, 0].item())
""",
        reason="After each write only the base is read, and every base is made here, so no caller suffers.",
        prints="12.0\n12.0\nTrue\n5.0",
    ),
    Claim(
        id="C47",
        program="""\
import torch

print(torch.FloatTensor([1.0, 2.0]))
""",
        reason="A list of numbers is always copied, whatever the constructor.",
        prints="tensor([1., 2.])",
    ),
    Claim(
        id="C48",
        program="""\
import torch

print(torch.Tensor.detach.__doc__)
""",
        reason="The method is named, not called.",
        prints="""\
Returns a new Tensor, detached from the current graph.

    The result will never require gradient.

    This method also affects forward mode AD gradients and the result will never
    have forward mode AD gradients.

    .. note::

      Returned Tensor shares the same storage with the original one.
      In-place modifications on either of them will be seen, and may trigger
      errors in correctness checks.""",
    ),
    Claim(
        id="C49",
        program="""\
import torch

x = torch.ones(1)
print(hasattr(x, "volatile"))
x.volatile
""",
        reason="None of the first rules is about `volatile`; the rule on `Variable` will be, at the attribute.",
        later=((5, "TCL903"),),
        prints="True",
        warns=((4, "volatile was removed"), (5, "volatile was removed")),
    ),
    Claim(
        id="C50",
        program="""\
import torch

t1 = torch.tensor([1.0, 2.0], requires_grad=True)
t2 = torch.tensor([2.0, 3.0], requires_grad=True)
v3 = t1 + t2
d = v3.detach()
d.data.add_(t1)
print(v3, d, v3._version)
""",
        expected=((7, "TCL303"),),
        reason=(
            "The detached `d` is written and both it and `v3` are printed; this error outranks the warning on `.data`"
            " at the same place and storage, and an addition saves nothing that a backward could miss."
        ),
        prints="tensor([4., 7.], grad_fn=<AddBackward0>) tensor([4., 7.]) 0",
    ),
    Claim(
        id="C51",
        program="""\
import torch

t = torch.ones(2)
c = t.clone()
c[0] = 5
print(t, c is t, c.data_ptr() == t.data_ptr())
""",
        reason="The write goes to a clone, so `t` keeps its values.",
        prints="tensor([1., 1.]) False False",
    ),
    Claim(
        id="C52",
        program="""\
import warnings

import torch

t = torch.ones(2, requires_grad=True)
t.sum().backward()
warnings.simplefilter("ignore")
print(t.grad, t.clone().grad)
""",
        expected=((8, "TCL308"),),
        reason="The clone of a leaf that requires grad is no leaf, and a temporary cannot have been told to retain.",
        prints="tensor([1., 1.]) None",
    ),
    Claim(
        id="C53",
        program="""\
import torch

a = torch.ones(2)
a.add_(1)
print(a.is_leaf, a)
""",
        reason="A leaf that does not require grad may be written at any time.",
        prints="True tensor([2., 2.])",
    ),
    Claim(
        id="C54",
        program="""\
import torch

x = torch.ones(2, requires_grad=True)
d = (x * 2).detach().requires_grad_()
(d * 3).sum().backward()
print(d.is_leaf, d.grad, x.grad)
""",
        reason="`d` is a new leaf with its own gradient, nothing is written, and nobody else holds its memory.",
        prints="True tensor([3., 3.]) None",
    ),
    Claim(
        id="C55",
        program="""\
import torch

print(torch.ones(1).requires_grad, torch.ones(1).grad)
""",
        reason="A tensor that does not require grad is a leaf, so reading its `.grad` is no mistake though it is None.",
        prints="False None",
    ),
    Claim(
        id="C56",
        program="""\
import torch

torch.ones(1).backward()
""",
        reason="It raises because nothing ever required grad: no graph was cut, nothing was shared or written.",
        raises=Raised(3, "RuntimeError", NO_HISTORY),
    ),
    Claim(
        id="C57",
        program="""\
import torch

w = torch.ones(1, requires_grad=True)
z = torch.ones(1) + torch.ones(1)
(w + z).backward()
print(w.grad, z.grad)
""",
        reason="`z` is computed, but from tensors that do not require grad, so it is a leaf and torch does not warn.",
        prints="tensor([1.]) None",
    ),
    Claim(
        id="C58",
        program="""\
import torch
import torch.nn as nn
import torch.nn.functional as F

w = nn.Parameter(torch.randn(8, 4, 3, 3))
print(F.conv2d(torch.randn(1, 4, 5, 5), w, stride=2, padding=1).shape)
""",
        reason="The parameter shares its memory with a temporary that nobody else holds.",
        prints="torch.Size([1, 8, 3, 3])",
    ),
)
