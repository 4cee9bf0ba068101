"""Lookup of what an operation does: what it returns, shares, writes, reads and keeps for backward.

The facts are the rows of the Markdown tables beside this file. `tensor.md`, `functions.md`, `modules.md`, `numpy.md`
and `names.md` are generated from an installed torch and numpy (`python -m torchcopylint.knowledge.generate`),
`overlay.md` is written by hand and wins over them. Nothing here imports torch or numpy. A file is read when it is first
asked for, and a row is parsed when it is first looked up. `None` means that nothing is known.
"""

import os
from functools import cache
from typing import NamedTuple

Argument = int | str
"""Which argument of a call: a position (0 is the receiver of a method, or the first argument of a function), a keyword
name, or `*` for every positional argument."""

OUTPUT: Argument = -1
"""Stands for an output where an argument is asked for."""


class Saved(NamedTuple):
    """One thing that backward keeps."""

    what: str
    """`input` (the receiver or first argument), `output`, `indices` (an integer output, not the values), or `other`."""
    argument: Argument
    """Which argument it is; `OUTPUT` for an output."""
    needed_by: tuple[Argument, ...]
    """It is kept only if one of these arguments requires grad; empty: whichever argument requires grad."""


class Op(NamedTuple):
    """What one operation does."""

    name: str
    """The row's name: a method name, a dotted function name, or either with a call form, as in `max(dim)`."""
    result: str = "unknown"
    """What comes back: `tensor`, `tensors` (list or tuple of tensors), `number`, `bool`, `size` (`torch.Size` or a
    tuple of numbers), `string`, `none`, `array`, `arrays`, `list`, `self` (the receiver), `iterator`, `module`,
    `object` (a dtype, device, storage, handle ...), `input` (whatever kind argument `of` is), or `unknown`."""
    shares: str = "fresh"
    """How the result relates to memory of argument `of`: `fresh` (it does not), `view` (always an alias that shares
    the version counter), `multi` (several views at once), `same` (the very same object), `maybe` (a copy or an alias,
    depending on `when`), or `unversioned` (always an alias, which does not share the version counter)."""
    of: Argument = 0
    """Whose memory the result shares."""
    when: str = ""
    """What a `maybe`, or a write, depends on: words out of `dtype`, `device`, `layout`, `shape`, `mode`, `argument`."""
    apart: bool = False
    """Of several views: whether they are made one by one, so that autograd lets each be written in place."""
    versioned: bool = True
    """Where memory is shared: whether writes through the result bump the version counter of argument `of`."""
    may_be_same: bool = False
    """Whether the result can be the very same object as argument `of`."""
    writes: tuple[Argument, ...] = ()
    """The arguments that the call changes in place."""
    bumps: bool = True
    """Whether those writes bump the version counter."""
    metadata_only: bool = False
    """Whether the writes change shape, strides, flags or the storage pointer, but no element."""
    overwrites: bool = False
    """Whether the old content of what is written is of no consequence for the new one (`copy_`, `zero_`)."""
    saves: frozenset[str] = frozenset()
    """What backward keeps, and would notice being changed: any of `input`, `output`, `indices`, `other`."""
    saved: tuple[Saved, ...] = ()
    """The same in detail: which argument, and for whose gradient."""
    reads: bool = True
    """Whether the call looks at the content of the receiver (first argument). False for metadata, for pure aliases
    (`view`, `detach`: what is done with the alias reads), and for overwriting."""
    inplace_keyword: bool = False
    """Whether it accepts `inplace=`."""
    out_keyword: bool = False
    """Whether it accepts `out=`."""
    scalar: bool = False
    """Whether it returns a 0-dim tensor when called without a `dim` (for numpy: a number without an `axis`)."""
    dtype: str = ""
    """The dtype of the result where it does not depend on the input: `int64`, `bool`, `float32` ..."""
    differentiable: bool = False
    """Whether the result carries the graph of its inputs."""
    tensor_only: bool = False
    """For methods and properties: whether the name is evidence that the receiver is a tensor (see `evidence`)."""
    pair: str = ""
    """The name of the in-place twin of an out-of-place operation, or the other way round (`add`, `add_`)."""
    arguments: tuple[str, ...] = ()
    """The parameter names by position, in rows that speak of an argument other than 0: keyword to position."""
    forms: tuple[str, ...] = ()
    """Names of further rows for the same operation called in another form whose facts differ (`max(dim)`)."""
    reason: str = ""
    """For rows written by hand: why."""

    @property
    def short(self) -> str:
        """The last part of the name, without the call form: `max` of `torch.Tensor.max(dim)`."""
        return self.name.partition("(")[0].rpartition(".")[2]


class ModuleOp(NamedTuple):
    """What a call of an instance of one module class does. The input is the first argument of `forward`."""

    name: str
    """The canonical dotted name of the class."""
    takes: tuple[str, ...] = ("input",)
    """The names of what `forward` is called with, in their order."""
    output: str = "unknown"
    """What `forward` returns with default settings: `tensor`, `tensors` (a tuple, possibly nested), `scalar` (a 0-dim
    tensor, such as a loss), `none`, or `unknown`."""
    shares: str = "fresh"
    """How the output relates to the input's memory, as in `Op.shares`."""
    when: str = ""
    """What a `maybe` depends on: `mode` (train or eval), `shape`, `argument`."""
    may_be_same: bool = False
    """Whether the output can be the input object itself (`Identity`, `Dropout` in eval)."""
    parameters: tuple[str, ...] = ()
    """The names of its parameters, with all of them switched on where that is an option."""
    buffers: tuple[str, ...] = ()
    """The names of its buffers, likewise."""
    inplace_keyword: bool = False
    """Whether its constructor accepts `inplace=`."""
    writes_buffers: bool = False
    """Whether `forward` in training mode writes its buffers."""
    saves: frozenset[str] = frozenset()
    """What backward keeps: `input`, `output`, or neither, when the input requires grad."""
    nested: bool = False
    """Whether its submodules have parameters (`Transformer`)."""
    container: bool = False
    """Whether it only holds other modules or parameters (`Sequential`, `ModuleList`, `ParameterDict`)."""

    @property
    def stateful(self) -> bool:
        """Whether it has parameters or buffers, its own or in submodules. Of a container nothing is known."""
        return bool(self.parameters or self.buffers or self.nested)


_HERE = os.path.dirname(__file__)
_CARRIERS = frozenset({"tensor", "tensors", "self", "iterator", "input"})

_OPERATORS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "//": "floor_divide",
    "%": "remainder",
    "**": "pow",
    "@": "matmul",
    "&": "bitwise_and",
    "|": "bitwise_or",
    "^": "bitwise_xor",
    "<<": "bitwise_left_shift",
    ">>": "bitwise_right_shift",
    "==": "eq",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "-x": "neg",
    "+x": "positive",
    "~": "bitwise_not",
    "not": "__bool__",
    "in": "__contains__",
    "[]": "__getitem__",
}
_REFLECTED = {
    "+": "__radd__",
    "-": "__rsub__",
    "*": "__rmul__",
    "/": "__rtruediv__",
    "//": "__rfloordiv__",
    "%": "__rmod__",
    "**": "__rpow__",
    "@": "__rmatmul__",
    "&": "__rand__",
    "|": "__ror__",
    "^": "__rxor__",
    "<<": "__rlshift__",
    ">>": "__rrshift__",
}
_INPLACE = {
    "+=": "add_",
    "-=": "sub_",
    "*=": "mul_",
    "/=": "div_",
    "//=": "floor_divide_",
    "%=": "remainder_",
    "**=": "pow_",
    "&=": "bitwise_and_",
    "|=": "bitwise_or_",
    "^=": "bitwise_xor_",
    "<<=": "bitwise_left_shift_",
    ">>=": "bitwise_right_shift_",
    # Tensors have no `__imatmul__`: Python computes `x @ y` and binds the name again.
    "@=": "matmul",
    "[]=": "__setitem__",
}

# The cells after the name: result, shares, writes, saves, dtype, arguments, notes and, in the overlay, reason.
_NOTES = 6

# Where one object is found under several dotted names: the prefix on the left is written as the one on the right.
_PREFIXES = (
    ("torch._C._VariableFunctions.", "torch."),
    ("torch._VF.", "torch."),
    ("torch.functional.", "torch."),
    ("torch._C._nn.", "torch.nn.functional."),
    ("torch._C._linalg.linalg_", "torch.linalg."),
    ("torch._C._special.special_", "torch.special."),
    ("torch._C._fft.fft_", "torch.fft."),
    ("torch._C.TensorBase.", "torch.Tensor."),
    ("torch._tensor.Tensor", "torch.Tensor"),
    ("torch.utils.dlpack.", "torch."),
    ("torch.nn.parameter.", "torch.nn."),
    ("torch.autograd.variable.", "torch.autograd."),
    ("torch.nn.utils.clip_grad.", "torch.nn.utils."),
    ("torch.nn.utils.convert_parameters.", "torch.nn.utils."),
    ("torch.utils.data._utils.collate.", "torch.utils.data."),
    ("torch.utils.data.dataloader.", "torch.utils.data."),
    ("torch.serialization.", "torch."),
    ("einops.einops.", "einops."),
)
_FOLDED = (*(prefix for prefix, _ in _PREFIXES), "torch.nn.modules.")


def canonical(dotted: str) -> str:
    """The one name under which the tables know what `dotted` names; `dotted` itself where they do not fold it."""
    if not dotted.startswith(_FOLDED):
        return dotted
    for prefix, replacement in _PREFIXES:
        if dotted.startswith(prefix):
            return replacement + dotted[len(prefix) :]
    if dotted.startswith("torch.nn.modules."):
        last = dotted.rpartition(".")[2]
        if last[:1].isupper():
            return "torch.nn." + last
    return dotted


@cache
def tensor_method(name: str) -> Op | None:
    """What the method `name` of `torch.Tensor` does; argument 0 is the receiver. Special methods are known too."""
    return None if _is_property("torch.Tensor." + name) else _op("torch.Tensor." + name)


@cache
def tensor_property(name: str) -> Op | None:
    """What reading the attribute `name` of a `torch.Tensor` does; `data=` (and so on) is what assigning to it does."""
    return _op("torch.Tensor." + name) if _is_property("torch.Tensor." + name) else None


@cache
def array_method(name: str) -> Op | None:
    """What the method or attribute `name` of `numpy.ndarray` does; argument 0 is the receiver."""
    return _op("numpy.ndarray." + name)


@cache
def function(dotted: str) -> Op | None:
    """What the function of that dotted name does, aliases folded; `torch.Tensor.add_` finds the method."""
    name = canonical(dotted)
    return None if _is_property(name) else _op(name)


RECURRENT = "torch.nn.RNNBase"
"""What all recurrent layers are. It keeps what each of them keeps; whether its state is a pair, nobody knows."""


@cache
def module_class(dotted: str) -> ModuleOp | None:
    """What an instance of the module class of that dotted name does when it is called, aliases folded."""
    name = canonical(dotted)
    row = _cells("modules.md", "torch.nn.GRU" if name == RECURRENT else name)
    if row is None:
        return None
    takes, output, shares, parameters, buffers, saves, notes = row
    relation, _, when = _condition(shares)
    flags = notes.split()
    return ModuleOp(
        name=name,
        takes=tuple(takes.split()) or ("input",),
        output=output,
        shares=relation,
        when=when,
        may_be_same="same-object" in flags or relation == "same",
        parameters=tuple(parameters.split()),
        buffers=tuple(buffers.split()),
        inplace_keyword="inplace=" in flags,
        writes_buffers="writes-buffers" in flags,
        saves=frozenset(saves.split()),
        nested="nested" in flags,
        container="container" in flags,
    )


@cache
def operator(symbol: str, *, reflected: bool = False) -> Op:
    """What `x <symbol> y` does for a tensor `x`: `+`, `@`, `**`, `==`, `in`, `[]`, and for unary ones `-x`, `+x`, `~`,
    `not`. With `reflected`, the tensor stands on the right of a number (`2 / x`); argument 0 is the tensor all the
    same. Raises `KeyError` for a symbol that Python has no such operator for.
    """
    op = tensor_method(_REFLECTED[symbol] if reflected else _OPERATORS[symbol])
    if op is None:
        raise KeyError(symbol)
    return op


@cache
def inplace_operator(symbol: str) -> Op:
    """What `x <symbol> y` does for a tensor `x`: `+=`, `**=`, ..., `[]=`. `@=` is out of place, as in torch.
    Raises `KeyError` for a symbol that Python has no such operator for.
    """
    op = tensor_method(_INPLACE[symbol])
    if op is None:
        raise KeyError(symbol)
    return op


@cache
def evidence(attribute_name: str) -> str:
    """What kind of object has an attribute of that name and no other common kind has: `tensor`, `module`,
    `optimizer`, `array`; or empty. The name of a method is evidence where it is called (`x.dim()`), not where it is
    only read. The kinds compared are listed at the head of `names.md`.
    """
    row = _cells("names.md", attribute_name)
    return row[0] if row else ""


@cache
def owners(method: str) -> frozenset[str]:
    """Which other objects have a method of tensors that is not evidence by itself; nothing of any other name."""
    row = _cells("owners.md", method)
    return frozenset(row[0].split()) if row else frozenset()


OF_TENSORS = ("torch.nn.functional.", "torch.fft.", "torch.special.", "torch.linalg.")
"""Whose functions compute from a tensor, which comes first."""
PAIRS = (("x1", "x2"), ("input1", "input2"), ("a", "b"))
"""How the arguments are called of functions that take two tensors: `cdist`, `cosine_similarity`."""
OF_NUMBERS_TOO = frozenset(
    {
        "add",
        "addbmm",
        "addmm",
        "addmv",
        "addr",
        "baddbmm",
        "div",
        "divide",
        "float_power",
        "floor_divide",
        "mul",
        "multiply",
        "polygamma",
        "pow",
        "remainder",
    }
    | {"sub", "subtract", "true_divide", "xlog1py", "xlogy", "zeta"}
)
"""Functions that take a number in the place of the first tensor (executed in the tests, as all of this)."""


@cache
def refuses_others(dotted: str) -> bool:
    """Whether a function of torch computes a tensor from one that comes first, and raises for an array, a list or a
    number there. What joins tensors takes a list of them."""
    op, short = function(dotted), dotted.rpartition(".")[2]
    if op is None or op.result != "tensor" or op.writes or short in OF_NUMBERS_TOO or short == "multi_dot":
        return False
    if not dotted.startswith("torch.") or not (op.differentiable or short.endswith("_like")):
        return False
    alike = short.endswith("_like") or dotted.startswith(OF_TENSORS) or op.arguments[:2] in PAIRS
    return alike or tensor_method(short) is not None


@cache
def torch_version() -> str:
    """The version of torch that the generated tables come from, without a local part: `2.13.0`."""
    return _text("tensor.md").partition("\ntorch ")[2].partition(",")[0]


def names(table: str) -> tuple[str, ...]:
    """Every row's name in one of the files, in the file's order: `tensor`, `functions`, `modules`, `numpy`, `names` or
    `overlay`. Names are dotted, except in `names`.
    """
    return tuple(_index(table + ".md"))


@cache
def _text(file: str) -> str:
    with open(os.path.join(_HERE, file), encoding="utf-8") as lines:
        return lines.read()


@cache
def _index(file: str) -> dict[str, str]:
    """What follows the name in each row of a file, by name. The name stands between backticks."""
    rows = (row.partition("` | ") for row in _text(file).split("\n| `")[1:])
    return {name: rest for name, _, rest in rows}


def _cells(file: str, name: str) -> list[str] | None:
    """The cells after the first in the row of that name."""
    rest = _index(file).get(name)
    # The last row of a section is followed by the next heading.
    return None if rest is None else rest.partition("\n")[0].removesuffix(" |").split(" | ")


@cache
def _row(name: str) -> list[str] | None:
    """The cells of an operation: from the overlay, if it has that name, else from the generated table."""
    row = _cells("overlay.md", name)
    if row is None:
        if name.startswith("torch.Tensor."):
            row = _cells("tensor.md", name)
        elif name.startswith("numpy."):
            row = _cells("numpy.md", name)
        elif name.startswith("torch."):
            row = _cells("functions.md", name)
    return row


def _is_property(name: str) -> bool:
    row = _row(name)
    return row is not None and "property" in row[_NOTES].split()


@cache
def _op(name: str) -> Op | None:
    row = _row(name)
    if row is None:
        return None
    result, shares, writes, saves, dtype, arguments, notes, *reason = row
    relation, of, when = _condition(shares)
    written, _, write_when = writes.partition(" (")
    flags = notes.split()
    saved = tuple(_saved(item) for item in saves.split(", ") if item)
    return Op(
        name=name,
        result=result,
        shares=relation,
        of=of,
        when=when or write_when.rstrip(")"),
        apart="apart" in flags,
        versioned=relation != "unversioned" and "unversioned" not in flags,
        may_be_same="same-object" in flags or relation == "same",
        writes=tuple(_argument(item) for item in written.split(", ") if item),
        bumps="no-bump" not in flags,
        metadata_only="metadata" in flags,
        overwrites="overwrites" in flags,
        saves=frozenset(item.what for item in saved),
        saved=saved,
        reads="no-read" not in flags,
        inplace_keyword="inplace=" in flags,
        out_keyword="out=" in flags,
        scalar="scalar" in flags,
        dtype=dtype,
        differentiable=result in _CARRIERS
        and "no-graph" not in flags
        and (result == "tensor" or not name.startswith("numpy.")),
        tensor_only="tensor-only" in flags,
        pair=_pair(name),
        arguments=tuple(arguments.split()),
        forms=(*(f"{name}({flag[5:]})" for flag in flags if flag.startswith("form:")), *_overlay_forms().get(name, ())),
        reason=reason[0] if reason else "",
    )


@cache
def _overlay_forms() -> dict[str, tuple[str, ...]]:
    """The call forms that the overlay adds to an operation, which may itself stand in a generated table."""
    forms: dict[str, tuple[str, ...]] = {}
    for name in _index("overlay.md"):
        base, bracket, _ = name.partition("(")
        if bracket:
            forms[base] = (*forms.get(base, ()), name)
    return forms


def _condition(cell: str) -> tuple[str, Argument, str]:
    """`maybe of 1 (dtype, device)` as (`maybe`, 1, `dtype, device`)."""
    head, _, when = cell.partition(" (")
    relation, _, of = head.partition(" of ")
    return relation or "fresh", _argument(of or "0"), when.rstrip(")")


def _saved(item: str) -> Saved:
    """`input for 1`, `2`, `output for 0&1` as what backward keeps."""
    what, _, users = item.partition(" for ")
    needed_by = tuple(_argument(user) for user in users.split("&") if user)
    if what in ("output", "indices"):
        return Saved(what, OUTPUT, needed_by)
    if what == "input":
        return Saved("input", 0, needed_by)
    return Saved("other", _argument(what), needed_by)


def _argument(text: str) -> Argument:
    return int(text) if text.isdigit() else text


def _pair(name: str) -> str:
    base = name.partition("(")[0]
    if base.endswith("__"):
        return ""
    twin = base[:-1] if base.endswith("_") else base + "_"
    return twin.rpartition(".")[2] if _row(twin) is not None else ""
