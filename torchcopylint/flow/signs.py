"""What must stand in a file for the engine to know anything of a value in it; derived from where the knowledge is.

Unknown is silent, so a file in which no value can become known has no findings. A value becomes known by what is
imported (the packages that the tables and the lists of classes speak of), by the attributes and methods that are used
on it, or by its name. `tests/test_screen.py` holds this against real code: a file that shows no sign has no finding.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from functools import cache
from typing import NamedTuple

from torchcopylint.flow.autograd.unknowns import BACKWARD_NAMES
from torchcopylint.flow.networks.modules import STATE_METHODS
from torchcopylint.flow.values import kinds
from torchcopylint.knowledge import table

TABLES = ("functions", "modules", "numpy", "overlay", "tensor")
UNKNOWN_RECEIVERS = frozenset({"data", "forward"})
"""What is understood even of a receiver, or in a class, of which nothing else is known (`attributes`, `world`)."""


class Signs(NamedTuple):
    """`packages` are names of top-level packages, `attributes` those of attributes and methods."""

    packages: frozenset[str]
    attributes: frozenset[str]


@cache
def signs() -> Signs:
    """The signs as far as they are fixed words."""
    dotted = {name for file in TABLES for name in table.names(file)}
    dotted |= kinds.MODULE_BASES | kinds.OTHER_BASES | set(kinds.ANNOTATIONS)
    packages = frozenset(name.partition(".")[0] for name in dotted if "." in name) - sys.stdlib_module_names
    attributes = frozenset(table.names("names"))
    attributes |= kinds.PARAMETER_NAMES | kinds.BUFFER_NAMES | STATE_METHODS | BACKWARD_NAMES | UNKNOWN_RECEIVERS
    return Signs(packages, attributes)


def shows(names: Collection[str], attributes: Collection[str]) -> bool:
    """Whether one of the names that occur in a file, or one of the attributes and methods, is a sign."""
    fixed = signs()
    return (
        not fixed.attributes.isdisjoint(attributes)
        or any(_by_form(name) for name in attributes)
        or any(name in fixed.packages or _by_form(name) for name in names)
    )


def _by_form(name: str) -> bool:
    return (
        kinds.from_name(name) != kinds.from_name("")
        or kinds.named_parameters(name)
        or kinds.is_optimizer_class(f".{name}")
    )
