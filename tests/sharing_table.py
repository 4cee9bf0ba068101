"""The rows of `docs/what-copies-what-shares.md`: which operations there are, and calls that show what each does.

What a row says comes from the knowledge table; `test_sharing_table.py` executes the calls and compares. In them,
`x` is a computed float32 tensor of shape (2, 2) that requires grad, `d` and `h` the same in double and half precision,
`leaf` a leaf that requires grad, `y` a tensor that does not, `a` a float32 array of shape (2, 2).
"""

from __future__ import annotations

from typing import NamedTuple

from torchcopylint.knowledge import table
from torchcopylint.knowledge.table import Op


class Row(NamedTuple):
    """One operation. `name` is its row in the knowledge table; `shares` and `copies` are calls that do, the first is
    the one that is shown. Each is compared with the variable that stands first in it."""

    name: str
    shares: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The call that stands in the table."""
        return (self.shares or self.copies)[0]


def _view(name: str, *calls: str) -> Row:
    return Row(f"torch.Tensor.{name}", shares=calls)


def _either(name: str, shares: str, copies: str) -> Row:
    return Row(name if "." in name else f"torch.Tensor.{name}", (shares,), (copies,) if copies else ())


def _fresh(name: str, *calls: str) -> Row:
    return Row(name if "." in name else f"torch.Tensor.{name}", copies=calls)


GROUPS: dict[str, tuple[Row, ...]] = {
    "views": (
        _view("view", "x.view(-1)"),
        _view("view_as", "x.view_as(x)"),
        _view("unsqueeze", "x.unsqueeze(0)"),
        _view("squeeze", "x.squeeze()"),
        _view("unflatten", "x.unflatten(0, (1, 2))"),
        _view("t", "x.t()"),
        _view("T", "x.T"),
        _view("mT", "x.mT"),
        _view("transpose", "x.transpose(0, 1)"),
        _view("permute", "x.permute(1, 0)"),
        _view("swapaxes", "x.swapaxes(0, 1)"),
        _view("movedim", "x.movedim(0, 1)"),
        _view("__getitem__(basic)", "x[0]", "x[:1]", "x[..., 0]", "x[None]", "x[0, 1]"),
        _view("narrow", "x.narrow(0, 0, 1)"),
        _view("select", "x.select(0, 0)"),
        _view("diagonal", "x.diagonal()"),
        _view("expand", "x.expand(3, 2, 2)"),
        _view("expand_as", "x.expand_as(x)"),
        _view("unfold", "x.unfold(0, 1, 1)"),
        _view("as_strided", "x.as_strided((2,), (1,))"),
        _view("real", "x.real"),
        _view("unbind", "x.unbind()[0]"),
        _view("chunk", "x.chunk(2)[0]"),
        _view("split", "x.split(1)[0]"),
        _view("tensor_split", "x.tensor_split(2)[0]"),
    ),
    "either": (
        _either("reshape", "x.reshape(-1)", "x.t().reshape(-1)"),
        _either("flatten", "x.flatten()", "x.t().flatten()"),
        _either("ravel", "x.ravel()", "x.t().ravel()"),
        _either("contiguous", "x.contiguous()", "x.t().contiguous()"),
        _either("to", "x.to(torch.float32)", "x.to(torch.float64)"),
        _either("type", "x.type(torch.float32)", "x.type(torch.float64)"),
        _either("type_as", "x.type_as(y)", "x.type_as(y.double())"),
        _either("float", "x.float()", "d.float()"),
        _either("double", "d.double()", "x.double()"),
        _either("half", "h.half()", "x.half()"),
        _either("cpu", "x.cpu()", ""),
        _either("torch.atleast_2d", "torch.atleast_2d(x)", ""),
        _either("torch.nn.functional.dropout", "F.dropout(x, training=False)", "F.dropout(x)"),
        _either("torch.as_tensor(tensor)", "torch.as_tensor(x)", "torch.as_tensor(x, dtype=torch.float64)"),
        _either("torch.asarray(tensor)", "torch.asarray(x)", "torch.asarray(x, copy=True)"),
    ),
    "copies": (
        _fresh("clone", "x.clone()", "x.clone(memory_format=torch.contiguous_format)"),
        _fresh("__getitem__(advanced)", "x[[0, 1]]", "x[x > -1]", "x[torch.tensor([1])]"),
        _fresh("repeat", "x.repeat(2, 1)", "x.repeat(1, 1)"),
        _fresh("tile", "x.tile(2)"),
        _fresh("repeat_interleave", "x.repeat_interleave(2)"),
        _fresh("torch.cat", "torch.cat([x, x])", "torch.cat([x])"),
        _fresh("torch.stack", "torch.stack([x, x])"),
        _fresh("index_select", "x.index_select(0, torch.tensor([0]))"),
        _fresh("masked_select", "x.masked_select(y > -1)"),
        _fresh("gather", "x.gather(0, torch.zeros(2, 2, dtype=torch.int64))"),
        _fresh("take", "x.take(torch.tensor([0, 1]))"),
        _fresh("flip", "x.flip(0)"),
        _fresh("roll", "x.roll(1)"),
        _fresh("triu", "x.triu()"),
        _fresh("add", "x + 1", "x.add(0)"),
        _fresh("mul", "x * 1", "x.mul(1)"),
        _fresh("relu", "x.relu()"),
        _fresh("clamp", "x.clamp(min=-9.0)"),
        _fresh("sum", "x.sum()"),
        _fresh("softmax", "x.softmax(0)"),
        _fresh("torch.where", "torch.where(x > -9, x, y)"),
        _fresh("torch.zeros_like", "torch.zeros_like(x)"),
        _fresh("torch.empty_like", "torch.empty_like(x)"),
        _fresh("torch.full_like", "torch.full_like(x, 1.0)"),
        _fresh("torch.nn.functional.pad", "F.pad(x, (1, 1))"),
    ),
    "graph": (
        _view("detach", "x.detach()"),
        _view("data", "x.data"),
        Row("torch.nn.Parameter", shares=("nn.Parameter(x)",)),
        Row("torch.Tensor(tensor)", shares=("torch.Tensor(x)",)),
        Row("copy.copy(tensor)", shares=("copy.copy(x)",)),
        _fresh("copy.deepcopy", "copy.deepcopy(leaf)"),
        _fresh("torch.tensor", "torch.tensor(y.tolist())"),
    ),
    "numpy": (
        _view("numpy", "y.numpy()"),
        Row("numpy.asarray(tensor)", ("np.asarray(y)",), ("np.asarray(y, dtype=np.float64)",)),
        Row("torch.from_numpy", shares=("torch.from_numpy(a)",)),
        Row("torch.as_tensor(array)", ("torch.as_tensor(a)",), ("torch.as_tensor(a, dtype=torch.float64)",)),
        Row("torch.asarray(array)", ("torch.asarray(a)",), ("torch.asarray(a, copy=True)",)),
        Row("torch.Tensor(array)", ("torch.Tensor(a)",), ('torch.Tensor(a.astype("float64"))',)),
        Row("torch.frombuffer", shares=("torch.frombuffer(a, dtype=torch.float32)",)),
        Row("torch.from_dlpack", shares=("torch.from_dlpack(y)",)),
        _fresh("torch.tensor", "torch.tensor(a)"),
        _fresh("numpy.array", "np.array(y)"),
        _fresh("tolist", "y.tolist()"),
        _fresh("item", "y[0, 0].item()"),
    ),
    "inplace": (
        _view("add_", "x.add_(1)"),
        _view("mul_", "x.mul_(2)"),
        _view("zero_", "x.zero_()"),
        _view("fill_", "x.fill_(1.0)"),
        _view("clamp_", "x.clamp_(min=0.0)"),
        _view("copy_", "y.copy_(y + 1)"),
        _view("detach_", "x.detach_()"),
        _view("requires_grad_", "x.requires_grad_()"),
        _view("squeeze_", "x.squeeze_()"),
    ),
}
"""The rows of each table, by the name that the document asks for."""

ONE_SIDED = {
    "torch.Tensor.cpu": "the other side needs a tensor on another device",
    "torch.atleast_2d": "it never copies: a tensor of two dimensions comes back itself, a smaller one as a view",
}
"""Operations that share or copy, of which only one side is shown, and why."""

_DEPENDS = {
    "dtype": "whether the dtype is this already",
    "device": "whether it is on the device already",
    "layout": "whether it is contiguous already",
    "shape": "the shape",
    "mode": "training or evaluation",
    "argument": "the arguments",
}
HEAD = (
    "| Operation | New memory | Shares | One version counter | Keeps the graph | Depends on |",
    "|---|---|---|---|---|---|",
)


def operation(row: Row) -> Op:
    """What the knowledge table says of a row's operation. Raises `KeyError` if it has none."""
    method = row.name.removeprefix("torch.Tensor.") if row.name.startswith("torch.Tensor.") else ""
    found = None
    if method:
        found = table.tensor_method(method) or table.tensor_property(method)
    found = found or table.function(row.name) or table.array_method(row.name.removeprefix("numpy.ndarray."))
    if found is None:
        raise KeyError(row.name)
    return found


def rendered(group: str) -> str:
    """The table of one group, as Markdown."""
    return "\n".join([*HEAD, *(_line(row) for row in GROUPS[group])])


def _line(row: Row) -> str:
    op = operation(row)
    memory = {
        "fresh": ("yes", "no"),
        "maybe": ("sometimes", "if not, it is the same object" if op.may_be_same else "sometimes"),
        "same": ("no", "the same object"),
    }.get(op.shares, ("no", "yes"))
    version = "" if op.shares == "fresh" else "yes" if op.versioned else "no"
    depends = " and ".join(_DEPENDS[word] for word in op.when.split(", ") if word)
    other = f"{depends}; `{row.copies[0]}` copies" if depends and row.copies else depends
    cells = (f"`{row.shown}`", *memory, version, "yes" if op.differentiable else "no", other)
    return "".join(f"| {cell} " for cell in cells) + "|"
