"""What something is, from annotations, constructors, use and names.

Unknown means silent, so each source says how sure it is: annotations and constructors prove, use is likely, a name is
a hint (figures on which facts hold in public code: 81 of 100 `.data` receivers are found by these).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from torchcopylint.flow import model
from torchcopylint.flow.model import Fact, Kind, Object, Sure, Value
from torchcopylint.flow.tape import (
    ASKED,
    FROM_NUMPY,
    HANDED_TO,
    KEEPDIM,
    OF_FIELD,
    OF_TENSOR,
    OPERAND,
    UNION,
    WITH_MORE,
    Dotted,
)
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tape import Annotation

ANNOTATIONS: dict[str, Kind] = {
    "torch.Tensor": Kind.TENSOR,
    "torch.FloatTensor": Kind.TENSOR,
    "torch.LongTensor": Kind.TENSOR,
    "torch.IntTensor": Kind.TENSOR,
    "torch.BoolTensor": Kind.TENSOR,
    "torch.ByteTensor": Kind.TENSOR,
    "torch.DoubleTensor": Kind.TENSOR,
    "torch.HalfTensor": Kind.TENSOR,
    "torch.autograd.Variable": Kind.TENSOR,
    "torch.nn.Parameter": Kind.PARAMETER,
    "torch.nn.Module": Kind.MODULE,
    "torch.optim.Optimizer": Kind.OPTIMIZER,
    "torch.optim.optimizer.Optimizer": Kind.OPTIMIZER,
    "numpy.ndarray": Kind.ARRAY,
    "numpy.typing.NDArray": Kind.ARRAY,
    "bytearray": Kind.BYTES,
    "int": Kind.NUMBER,
    "float": Kind.NUMBER,
    "bool": Kind.NUMBER,
    "str": Kind.STRING,
    "bytes": Kind.STRING,
    "None": Kind.NONE,
    "list": Kind.LIST,
    "typing.List": Kind.LIST,
    "typing.Sequence": Kind.LIST,
    "typing.Iterable": Kind.ITERATOR,
    "typing.Iterator": Kind.ITERATOR,
    "collections.abc.Sequence": Kind.LIST,
    "collections.abc.Iterable": Kind.ITERATOR,
    "collections.abc.Iterator": Kind.ITERATOR,
    "tuple": Kind.TUPLE,
    "typing.Tuple": Kind.TUPLE,
    "dict": Kind.DICT,
    "typing.Dict": Kind.DICT,
    "typing.Mapping": Kind.DICT,
    "collections.abc.Mapping": Kind.DICT,
    "collections.OrderedDict": Kind.DICT,
    "argparse.Namespace": Kind.OTHER,
    "torch.device": Kind.OTHER,
    "torch.dtype": Kind.OTHER,
    "torch.utils.data.DataLoader": Kind.OTHER,
    "torch.utils.data.Dataset": Kind.OTHER,
    "torch.nn.utils.rnn.PackedSequence": Kind.OTHER,
}
"""Kinds that an annotation proves; dotted names as the imports resolve them."""

MULTIPROCESSING = ("torch.multiprocessing", "multiprocessing")
"""Both share tensors: importing torch teaches it to the queues of the standard library."""
QUEUES = frozenset(
    f"{package}.{name}" for package in MULTIPROCESSING for name in ("Queue", "SimpleQueue", "JoinableQueue")
)
OF_THREADS = "queue of threads"
"""The type of a list that is a queue between threads, which share what stands in it."""
QUEUE = "queue"
"""The type of a list that is a queue between processes."""

MODULE_BASES = frozenset(
    {
        "torch.nn.Module",
        "torch.jit.ScriptModule",
        "lightning.LightningModule",
        "lightning.pytorch.LightningModule",
        "pytorch_lightning.LightningModule",
        "transformers.PreTrainedModel",
        "transformers.modeling_utils.PreTrainedModel",
        "torch_geometric.nn.MessagePassing",
        "stable_baselines3.common.torch_layers.BaseFeaturesExtractor",
    }
)
"""Classes outside the file that are modules. A base that ends in `Module` or is a `torch.nn` class is one as well."""

OTHER_FRAMEWORKS = frozenset(
    {"tensorflow", "keras", "jax", "flax", "mxnet", "paddle", "chainer", "theano", "mindspore", "tinygrad", "cntk"}
)
"""Packages whose tensors and models have methods and names like torch's."""
OTHER_BASES = frozenset({"torch.utils.data.Dataset", "torch.utils.data.IterableDataset", "gym.Env", "gymnasium.Env"})
"""Classes outside the file that are surely neither tensors nor modules."""

PARAMETER_NAMES = frozenset(
    {"weight", "bias", "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "in_proj_weight"}
)
BUFFER_NAMES = frozenset({"running_mean", "running_var", "num_batches_tracked"})
"""Attribute names that are parameters or buffers on whatever they are found (the best single fact on public code)."""

_MODEL_NAME = re.compile(
    r"(?:^|_)(?:model|net|network|module|generator|discriminator|encoder|decoder|critic|actor|policy|backbone"
    r"|classifier)\d?$|^(?:gen|disc|student|teacher|autoencoder|vae|unet|cnn|mlp|rnn|lstm|gru)$|^net_?[dg](?:_?[ab])?$",
    re.I,
)
_PART_NAME = re.compile(r"^(?:enc|dec|trunk|torso|stem|rnn|lstm|gru|gnn|gcn|resnet|vit|transformer|embedder)\d?$", re.I)
_KEY = re.compile(r"""\[["'](\w+)["']\]$""")
_CRITERION = re.compile(r"(?:^|[\W_])(?:loss|crit|criterion|nll|mse|bce|elbo)(?:[\W_]|$)", re.I)
_JUDGE_NAME = re.compile(r"(?:^|_)(?:disc|discriminator|critic|net_?D)(?:_?[A-Z0-9])?$|^D(?:_[A-Z0-9])?$")
_BATCH_NAME = re.compile(
    r"(?:^|[._])(?:batch|data|inputs?|samples?|targets?|labels?|enc(?:oding|oded)?s?|tokens|features|example)$", re.I
)
_LOADER_NAME = re.compile(r"load|data|batch", re.I)
_GENERATOR_NAME = re.compile(r"(?:^|_)(?:gen|generator|net_?G)(?:_?[A-Z0-9])?$|^G(?:_[A-Z0-9])?$")
_LAYER_NAME = re.compile(
    r"^(?:fc|layers?|conv|bn|features?|classifier|backbone|encoder|decoder|lstm|gru|rnn(?:_cell)?|linear|mlp|avgpool|transformer"
    r"|bert|roberta|gpt2?|resnet|vgg|densenet|base_model|feature_extractor|projector|predictor)_?\d*$|(?:_net|_model|_encoder|_decoder)$",
    re.I,
)
_MODEL_MAKERS = re.compile(
    r"^torchvision\.models\.(?:[a-z]+\.)*[a-z][a-z0-9_]*$|^timm\.create_model$|^timm\.models\.create_model$|^torch\.hub\.load$"
    r"|^transformers\.(?:Auto)?Model\w*\.from_pretrained$|^transformers\.\w+Model\w*\.from_pretrained$|^segmentation_models_pytorch\.[A-Z]\w*$"
)
_OPTIMIZER_NAME = re.compile(r"(?:^|_)(?:optim|optimizer|opt(?!ion|s$))(?:_?\w{1,6})?$|optimi[sz]er", re.I)
_LOSS_NAME = re.compile(
    r"(?:^|_)(?:loss|losses|nll|kl|err[DG]?)(?:_\w+)?\d?$|^loss[A-Z_]?\w{0,8}$|^err(?:or)?(?:(?-i:[A-Z_])\w{0,8})?$|_loss$",
    re.I,
)
_NOT_TENSOR_NAME = re.compile(
    r"(?:^|_)(?:args?|cfg|config|opt|opts|hps|task|hparams|options|params|dataset|datasets|loader|dataloader|datamodule|trainer|card|batch_data"
    r"|node|nodes|edge|edges|graph|g|response|event|msg|self|cls|df|request)$|(?:loader|dataset)$",
    re.I,
)


_SOURCE_NAME = re.compile(
    r"(?:^|_)(?:datasets?|ds|dset|subset|base|db|reader|loader|store|storage|file|h5|hdf5?|env|txn|archive)\d?$"
    r"|(?:dataset|reader)$",
    re.I,
)
_PARAMETERS_NAME = re.compile(r"(?:^|[._])(?:params|parameters)(?:_\w+)?$|(?:^|_)parameters\b", re.I)

_OF_MODULES = (
    frozenset({"train()", "eval()"}),
    frozenset({"parameters()", "modules()", "children()"}),
    frozenset({"state_dict()", "load_state_dict()"}),
)
"""Methods that others than modules have as well, by what they are for: what has two sorts of them is a module."""


@lru_cache(maxsize=4096)
def named_parameters(name: str) -> bool:
    """Whether a variable's name says that it holds parameters."""
    last = name.rpartition(".")[2]
    return bool(_PARAMETERS_NAME.search(last)) and not last.startswith("named")


_OF_RECURRENT = frozenset({"bidirectional", "proj_size"})
"""What no other layer of torch is made with."""
ANY_OPTIMIZER = Value(kind=Kind.IMPORTED, const=Dotted("torch.optim.Optimizer"))
"""A class that somebody picks by its name: `getattr(torch.optim, name)`, `torch.optim.__dict__[name]`."""


ANY_RECURRENT = Value(kind=Kind.IMPORTED, const=Dotted(model.ANY_RECURRENT))
"""A recurrent layer that is picked by its name: `getattr(nn, rnn_type)(size, hidden, layers, bidirectional=True)`."""


def is_recurrent(module: object, name: str, keywords: Iterable[str]) -> bool:
    """Whether what is picked out of a module is a recurrent layer, as what it is called, or made with, says."""
    if not isinstance(module, Dotted) or module != "torch.nn":
        return False
    return not _OF_RECURRENT.isdisjoint(keywords) or "rnn" in name.lower()


def are_optimizers(const: object) -> bool:
    """Whether what is picked by a name out of a module, or out of its names, is a class of optimizers."""
    return isinstance(const, Dotted) and const in ("torch.optim", "torch.optim.__dict__")


@lru_cache(maxsize=4096)
def is_optimizer_class(dotted: str) -> bool:
    """Whether a dotted name is that of an optimizer class."""
    last = dotted.rpartition(".")[2]
    if dotted.startswith("torch.optim."):
        return last[:1].isupper() and "lr_scheduler" not in dotted
    return (
        bool(re.fullmatch(r"(?:Fused|Lion|Lamb|Lars|Ada|RAdam|Ranger)\w*|\w*(?:SGD|Adam|AdamW|Adam8bit)", last))
        and "." in dotted
    )


@lru_cache(maxsize=4096)
def named_loss(name: str) -> bool:
    """Whether a variable's name says that it holds a loss."""
    return bool(_LOSS_NAME.search(name.rpartition(".")[2]))


@lru_cache(maxsize=4096)
def named_criterion(text: str) -> bool:
    """Whether an expression's text has a word in it for what computes a loss: `self.criterion(...)`, `loss_fn`."""
    return bool(_CRITERION.search(text))


@lru_cache(maxsize=4096)
def named_part(name: str) -> bool:
    """Whether a field's name says that it holds a network, where it is one of a network's and is called."""
    return bool(_PART_NAME.search(name))


@lru_cache(maxsize=4096)
def named_model(name: str) -> bool:
    """Whether a variable's name says that it holds a model, or the key that it stands under: `models["actor"]`."""
    key = _KEY.search(name)
    return bool(_MODEL_NAME.search(key[1] if key else name.rpartition(".")[2]))


@lru_cache(maxsize=4096)
def named_judge(name: str) -> bool:
    """Whether a model's name says that it judges what another one makes, so that gradients go through it."""
    return bool(_JUDGE_NAME.search(name.rpartition(".")[2]))


@lru_cache(maxsize=4096)
def named_generator(name: str) -> bool:
    """Whether a model's name says that it makes what another one judges, and learns from that."""
    return bool(_GENERATOR_NAME.search(name.rpartition(".")[2]))


def named_rival(name: str) -> bool:
    """Whether something that is called is one of the two networks of an adversarial pair by its name: `D(G(z))`."""
    return named_generator(name) or named_judge(name)


def named_loader(name: str) -> bool:
    """Whether what a loop goes through hands out batches by its name. What is in other lists may have been computed."""
    return bool(_LOADER_NAME.search(name))


def named_batch(name: str) -> bool:
    """Whether what has entries holds the parts of one sample or batch by its name."""
    return bool(_BATCH_NAME.search(name))


@lru_cache(maxsize=4096)
def named_layer(name: str) -> bool:
    """Whether the name of a module's field says that it is a module, and neither a parameter nor a setting."""
    return bool(_LAYER_NAME.search(name.rpartition(".")[2]))


@lru_cache(maxsize=4096)
def makes_model(dotted: str) -> bool:
    """Whether a function of a known library returns a module: the model zoos that most scripts start from."""
    return bool(_MODEL_MAKERS.match(dotted))


@lru_cache(maxsize=4096)
def named_optimizer(name: str) -> bool:
    """Whether a variable's name says that it holds an optimizer."""
    return bool(_OPTIMIZER_NAME.search(name.rpartition(".")[2]))


@lru_cache(maxsize=4096)
def named_otherwise(name: str) -> bool:
    """Whether a variable's name says that it holds something with a `.data` that is no tensor."""
    return bool(_NOT_TENSOR_NAME.search(name.rpartition(".")[2]))


def from_annotation(m: Machine, annotation: Annotation | None) -> Object | None:
    """What an annotation says; `None` if it says nothing that we understand. `Optional` says what it wraps."""
    if annotation is None:
        return None
    if annotation.name == UNION:
        known = [from_annotation(m, a) for a in annotation.arguments if a.name != "None"]
        kinds = {obj.kind for obj in known if obj is not None}
        return known[0] if len(kinds) == 1 and None not in known else None
    name = m.world.resolve_name(annotation.name)
    if name in ("typing.Optional", "Optional"):
        return from_annotation(m, annotation.arguments[0]) if annotation.arguments else None
    if name in ("typing.Annotated", "typing.Final", "typing.ClassVar") or name.startswith("jaxtyping."):
        return from_annotation(m, annotation.arguments[0]) if annotation.arguments else None
    kind = ANNOTATIONS.get(name)
    if kind is not None:
        return of_kind(kind)
    if name in QUEUES:
        return Object(Kind.LIST, Sure.PROVEN, type=QUEUE)
    return from_class_name(m, name)


def of_kind(kind: Kind) -> Object:
    """A proven object of a kind, about which nothing else is known."""
    if kind is Kind.PARAMETER:
        return Object(kind, Sure.PROVEN, leaf=Fact.YES, requires_grad=Fact.YES)
    return Object(kind, Sure.PROVEN)


def from_class_name(m: Machine, dotted: str) -> Object | None:
    """An instance of a class known by its resolved name: a class of this file, of torch.nn, an optimizer."""
    local = m.world.class_named(dotted)
    if local is not None:
        return m.world.instance(local)
    if table.module_class(dotted) is not None:
        return Object(Kind.MODULE, Sure.PROVEN, type=table.canonical(dotted))
    if dotted in MODULE_BASES:
        return Object(Kind.MODULE, Sure.PROVEN, type=dotted)
    if is_optimizer_class(dotted):
        return Object(Kind.OPTIMIZER, Sure.PROVEN, type=dotted)
    return None


_CALLED_OF_TENSORS = frozenset({"is_floating_point", "is_complex"})
"""What a dtype has as well, but nobody can call there."""


_OF_ANY = frozenset({HANDED_TO + ASKED, HANDED_TO + WITH_MORE, HANDED_TO + OPERAND})


def evidence(name: str, *, called: bool) -> str:
    """What kind of object is shown by an attribute that is read, or a method that is called: see `table.evidence`."""
    if name.startswith(HANDED_TO):
        if name in (HANDED_TO + ASKED, HANDED_TO + WITH_MORE, HANDED_TO + OPERAND) or name.startswith(
            HANDED_TO + OF_FIELD
        ):
            return ""
        return "tensor" if name in (HANDED_TO + KEEPDIM, HANDED_TO + OF_TENSOR) else "array"
    found = "tensor" if called and name in _CALLED_OF_TENSORS else table.evidence(name)
    if found == "tensor" and not called and table.tensor_property(name) is None:
        return ""
    return found


def telling(uses: frozenset[str]) -> frozenset[str]:
    """The names among some uses that are evidence for a kind."""
    return frozenset(name for use in uses if evidence(name := use.removesuffix("()"), called=use.endswith("()")))


def from_uses(uses: frozenset[str], *, alone: bool = False) -> tuple[Kind, Sure]:
    """What the attributes and methods used on something say of it; all must agree. `alone` is whether the file deals in
    tensors alone."""
    if HANDED_TO + ASKED in uses:
        uses -= {HANDED_TO + OF_TENSOR}
    found = {kind for use in uses if (kind := evidence(use.removesuffix("()"), called=use.endswith("()")))}
    if found == {"tensor"} and used_otherwise(uses):
        return Kind.UNKNOWN, Sure.NOT
    if {"zero_grad()", "step()"} <= uses and found <= {"optimizer"}:
        # Modules have no `step`, schedulers no `zero_grad`.
        return Kind.OPTIMIZER, Sure.LIKELY
    if found <= {"module"} and "step()" not in uses and sum(not uses.isdisjoint(some) for some in _OF_MODULES) > 1:
        return Kind.MODULE, Sure.LIKELY
    methods = frozenset(use.removesuffix("()") for use in uses if use.endswith("()"))
    alike = are_tensors_alone(methods) or (HANDED_TO + OPERAND in uses and any(map(is_of_no_operand, methods)))
    if not found and (alike or (alone and any(map(is_of_tables, methods)))):
        return (Kind.UNKNOWN, Sure.NOT) if used_otherwise(uses) else (Kind.TENSOR, Sure.LIKELY)
    if len(found) != 1:
        return Kind.UNKNOWN, Sure.NOT
    kinds = {"tensor": Kind.TENSOR, "module": Kind.MODULE, "optimizer": Kind.OPTIMIZER, "array": Kind.ARRAY}
    return kinds[found.pop()], Sure.LIKELY


@lru_cache(maxsize=4096)
def are_tensors_alone(methods: frozenset[str]) -> bool:
    """Whether tensors have some methods that others have as well, and nobody else has all of them: `float`, `abs`."""
    owners = [table.owners(name) for name in methods]
    return len(owners) > 1 and all(owners) and not frozenset.intersection(*owners)


_NO_OPERANDS = frozenset(
    {"torch.nn.Module", "storage", "PackedSequence", "holders-of-tensors", "memoryview", "Size", "polars.DataFrame"}
)
"""Who has methods of tensors, and is not computed with, or does not turn up where nobody has named its package."""


@lru_cache(maxsize=4096)
def is_of_no_operand(name: str) -> bool:
    """Whether tensors have a method, and beside them nobody who is computed with: `clone`, `cuda`, `float`."""
    owners = table.owners(name)
    return bool(owners) and owners <= _NO_OPERANDS


_TABLES = frozenset(
    {"pandas.DataFrame", "polars.DataFrame", "xarray.DataArray", "sympy.Expr", "scipy.sparse.csr_matrix", "Decimal"}
)
"""Who has methods of tensors, and does not turn up where nobody has named the package that makes it."""


@lru_cache(maxsize=4096)
def is_of_tables(name: str) -> bool:
    """Whether tensors have a method, and beside them nobody but tables, formulas and the like: `exp`, `pow`, `sqrt`."""
    owners = table.owners(name)
    return bool(owners) and owners <= _TABLES


def used_otherwise(uses: frozenset[str]) -> bool:
    """Whether something is used with attributes or methods that no tensor has."""
    return not all(_of_tensors(use.removesuffix("()")) for use in uses)


@lru_cache(maxsize=4096)
def _of_tensors(name: str) -> bool:
    """Whether tensors have an attribute of that name; private ones may be anybody's."""
    if name.startswith(HANDED_TO):
        return name not in (HANDED_TO + FROM_NUMPY, HANDED_TO + WITH_MORE)
    return name.startswith("_") or table.tensor_method(name) is not None or table.tensor_property(name) is not None


@lru_cache(maxsize=4096)
def named_source(name: str) -> bool:
    """Whether a variable's name says that it makes what it is asked for by a key: another dataset, a file."""
    return bool(_SOURCE_NAME.search(name.rpartition(".")[2]))


@lru_cache(maxsize=4096)
def from_name(name: str) -> tuple[Kind, Sure]:
    """What a variable's name hints at."""
    if named_optimizer(name):
        return Kind.OPTIMIZER, Sure.HINT
    if named_model(name):
        return Kind.MODULE, Sure.HINT
    if named_loss(name):
        return Kind.TENSOR, Sure.HINT
    return Kind.UNKNOWN, Sure.NOT
