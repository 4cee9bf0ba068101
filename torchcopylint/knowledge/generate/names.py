"""The rows of `names.md`: attribute names that tell what kind of object has them."""

from __future__ import annotations

import argparse
import array
import asyncio
import bz2
import collections
import configparser
import datetime
import decimal
import fractions
import inspect
import logging
import os
import pathlib
import queue
import random
import re
import sqlite3
import string
import subprocess
import threading
import types
import zipfile
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

import numpy as np  # type: ignore[import-not-found, unused-ignore]
import torch  # type: ignore[import-not-found, unused-ignore]

from torchcopylint.knowledge.generate.document import DIRECTORY

COLUMNS = ("name", "evidence")

LEGEND = """\
A name is evidence for a kind if only that kind of object has an attribute of that name, out of all that were
compared: tensors, modules (`torch.nn.Module`), optimizers (`torch.optim.Optimizer`), arrays (`numpy.ndarray`), some
fifty common classes of the standard library, other classes of torch and numpy (schedulers, distributions, data
loaders, storages but for what writes them, packed sequences, random generators), and what `elsewhere.md` lists of
other libraries. Private and special names are left out. The name of a method is evidence where it is called, not
where it is only read: `x.dim()` says more than `x.dim`. Nothing is said about a name that is not listed.
"""

_OTHERS: tuple[Any, ...] = (
    *(list, dict, set, frozenset, str, bytes, bytearray, memoryview, tuple, int, float, complex, bool, range, slice),
    *(collections.deque, collections.OrderedDict, collections.Counter, collections.defaultdict, collections.ChainMap),
    *(array.array, argparse.ArgumentParser, argparse.Namespace, asyncio.AbstractEventLoop, bz2.BZ2Compressor),
    *(configparser.ConfigParser, datetime.datetime, datetime.timedelta, decimal.Decimal, fractions.Fraction),
    *(inspect.Signature, inspect.Parameter, logging.Logger, os.stat_result),
    *(pathlib.Path, queue.Queue, random.Random, re.Pattern, re.Match, sqlite3.Connection, sqlite3.Cursor),
    *(string.Template, subprocess.Popen, threading.Thread, threading.Event, types.FunctionType, types.ModuleType),
    *(types.SimpleNamespace, zipfile.ZipFile, ElementTree.Element, ElementTree.ElementTree, BaseException),
    *(np.dtype, np.random.Generator, np.random.RandomState),
    *(torch.Size, torch.dtype, torch.device, torch.Generator),
    *(torch.nn.utils.rnn.PackedSequence, torch.optim.lr_scheduler.LRScheduler, torch.cuda.Stream, torch.cuda.Event),
    *(torch.utils.data.Dataset, torch.utils.data.DataLoader, torch.utils.data.Sampler, torch.amp.GradScaler),
)


def name_sections() -> dict[str, list[str]]:
    """The table of `names.md`."""
    found = evidence()
    return {"Names": [f"| `{name}` | {found[name]} |" for name in sorted(found)]}


def evidence() -> dict[str, str]:
    """For each telling name, its kind."""
    kinds = {
        "tensor": _public(torch.Tensor),
        "module": _public(torch.nn.Module()),
        "optimizer": _public(torch.optim.SGD([torch.zeros(1)])),
        "array": _public(np.ndarray),
    }
    others = set().union(*(_public(one) for one in _OTHERS), *_distributions(), elsewhere(), _of_storages())
    found = {}
    for kind, names in kinds.items():
        rest = others.union(*(other for name, other in kinds.items() if name != kind))
        found.update(dict.fromkeys(names - rest, kind))
    return found


OWNER_COLUMNS = ("name", "owners")

OWNERS_LEGEND = """\
The methods of tensors that other objects have as well, with all others that do, out of those that `names.md` compares.
What two such methods are called on is a tensor, if no other kind of object has both.
"""

_HOLDERS = frozenset(
    {"to", "cpu", "cuda", "half", "float", "double", "bfloat16", "type", "clone", "detach", "contiguous", "pin_memory"}
    | {"share_memory_", "size", "dim", "numel", "apply", "view", "reshape", "expand", "split", "chunk", "squeeze"}
    | {"unsqueeze", "permute", "transpose", "gather", "repeat", "flip", "index_select", "masked_fill"}
)
"""Methods that objects made of tensors have, too: PyG's `Data`, TensorDict, batches of tokens, boxes."""


def owner_sections() -> dict[str, list[str]]:
    """The table of `owners.md`."""
    owners: dict[str, set[str]] = {"holders of tensors": set(_HOLDERS), "torch.nn.Module": _public(torch.nn.Module())}
    owners |= {"optimizer": _public(torch.optim.SGD([torch.zeros(1)])), "numpy.ndarray": _public(np.ndarray)}
    owners |= {one.__name__: _public(one) for one in _OTHERS}
    owners |= {"distribution": set().union(*_distributions()), "storage": _of_storages()}
    owners |= dict(_rows_elsewhere())
    telling = evidence()
    rows = []
    for name in sorted(_public(torch.Tensor) - telling.keys()):
        theirs = sorted(owner.replace(" ", "-") for owner, names in owners.items() if name in names)
        if theirs and callable(getattr(torch.Tensor, name, None)):
            rows.append(f"| `{name}` | {' '.join(theirs)} |")
    return {"Owners": rows}


def elsewhere() -> set[str]:
    """The names in `elsewhere.md`."""
    return set().union(*(names for _, names in _rows_elsewhere()))


def _rows_elsewhere() -> Iterable[tuple[str, set[str]]]:
    with open(os.path.join(DIRECTORY, "elsewhere.md"), encoding="utf-8") as file:
        for row in file:
            cells = row.split(" | ")
            if row.startswith("| ") and len(cells) == 3 and not row.startswith(("| owner", "| ---")):
                yield cells[0].strip("| `").partition(",")[0], set(cells[1].split())


def _public(owner: Any) -> set[str]:
    return {name for name in dir(owner) if not name.startswith("_")}


def _of_storages() -> set[str]:
    """Of storages, but for what writes them: who says `copy_` or `fill_` writes memory of that kind either way."""
    names = _public(torch.UntypedStorage) | _public(torch.TypedStorage)
    return {name for name in names if not name.endswith("_")}


def _distributions() -> Iterable[set[str]]:
    """Of torch's distributions, which have methods such as `expand`, `log_prob` and `entropy`."""
    module = torch.distributions
    return (_public(value) for value in vars(module).values() if isinstance(value, type))
