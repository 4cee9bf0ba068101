"""Names: aliases folded to one, and names that tell what kind of object has them."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch

from torchcopylint.knowledge import arity, table

# Canonical names.


@pytest.mark.parametrize(
    ("dotted", "expected"),
    [
        ("torch.clamp", "torch.clamp"),
        ("torch.functional.einsum", "torch.einsum"),
        ("torch._C._VariableFunctions.add", "torch.add"),
        ("torch._VF.lstm", "torch.lstm"),
        ("torch._C._nn.gelu", "torch.nn.functional.gelu"),
        ("torch._C._linalg.linalg_inv", "torch.linalg.inv"),
        ("torch._C._special.special_expit", "torch.special.expit"),
        ("torch._C._fft.fft_fft", "torch.fft.fft"),
        ("torch._C.TensorBase.add_", "torch.Tensor.add_"),
        ("torch._tensor.Tensor", "torch.Tensor"),
        ("torch.utils.dlpack.from_dlpack", "torch.from_dlpack"),
        ("torch.nn.parameter.Parameter", "torch.nn.Parameter"),
        ("torch.autograd.variable.Variable", "torch.autograd.Variable"),
        ("torch.nn.utils.clip_grad.clip_grad_norm_", "torch.nn.utils.clip_grad_norm_"),
        ("torch.nn.utils.convert_parameters.parameters_to_vector", "torch.nn.utils.parameters_to_vector"),
        ("torch.utils.data._utils.collate.default_collate", "torch.utils.data.default_collate"),
        ("torch.serialization.load", "torch.load"),
        ("torch.nn.modules.linear.Linear", "torch.nn.Linear"),
        ("torch.nn.modules.Linear", "torch.nn.Linear"),
        ("einops.einops.rearrange", "einops.rearrange"),
    ],
)
def test_an_alias_is_folded_to_one_name(dotted: str, expected: str) -> None:
    assert table.canonical(dotted) == expected
    assert _resolve(dotted) == _resolve(expected)
    assert (table.function(expected) or table.module_class(expected)) is not None


def _resolve(dotted: str) -> object:
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise AssertionError(dotted)


def test_every_prefix_that_is_folded_exists() -> None:
    for prefix, _ in table._PREFIXES:
        head = prefix.rstrip(".")
        for ending in ("linalg_", "special_", "fft_"):
            head = head.removesuffix("." + ending)
        assert _resolve(head) is not None


# Evidence.


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("unsqueeze", "tensor"),
        ("detach", "tensor"),
        ("detach_", "tensor"),
        ("add_", "tensor"),
        ("requires_grad", "tensor"),
        ("grad_fn", "tensor"),
        ("named_modules", "module"),
        ("register_buffer", "module"),
        ("named_parameters", "module"),
        ("param_groups", "optimizer"),
        ("add_param_group", "optimizer"),
        ("argpartition", "array"),
        ("setflags", "array"),
    ],
)
def test_a_telling_name_tells_the_kind(name: str, kind: str) -> None:
    assert table.evidence(name) == kind


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cuda", "modules have it"),
        ("float", "modules have it"),
        ("requires_grad_", "modules have it"),
        ("zero_grad", "modules and optimizers have it"),
        ("state_dict", "optimizers and schedulers have it"),
        ("parameters", "function signatures have it"),
        ("step", "environments have it"),
        ("view", "arrays and data frames have it"),
        ("sum", "arrays and data frames have it"),
        ("split", "strings have it"),
        ("add", "sets have it"),
        ("log", "loggers have it"),
        ("backward", "training engines have it"),
        ("expand", "distributions have it"),
        ("data", "arrays and configurations have it"),
        ("shape", "arrays have it"),
        ("values", "dictionaries have it"),
        ("copy", "dictionaries have it"),
    ],
)
def test_a_common_name_tells_nothing(name: str, reason: str) -> None:
    assert table.evidence(name) == "", reason


@pytest.mark.parametrize("name", table.names("names"))
def test_evidence_is_found_on_its_own_kind_only(name: str) -> None:
    owners = {
        "tensor": torch.Tensor,
        "module": torch.nn.Module(),
        "optimizer": torch.optim.SGD([torch.zeros(1)]),
        "array": np.ndarray,
    }
    assert [kind for kind, owner in owners.items() if hasattr(owner, name)] == [table.evidence(name)]
    plain = (list, dict, set, str, bytes, tuple, int, float, complex)
    assert not any(hasattr(owner, name) for owner in plain)


def test_tensor_only_and_evidence_agree() -> None:
    for full in table.names("tensor"):
        name = full.rpartition(".")[2]
        op = table.tensor_method(name) or table.tensor_property(name)
        if op is not None and not name.startswith("_") and "(" not in name:
            assert op.tensor_only == (table.evidence(name) == "tensor"), name


@pytest.mark.parametrize("name", sorted(arity.BARE))
def test_a_bare_method_takes_nothing_by_position(name: str) -> None:
    with pytest.raises(TypeError):
        getattr(torch.ones(2, 2), name)(1)
