"""An exception of torch says which inputs it wants, and gets them."""

from __future__ import annotations

from typing import Any

import pytest

from torchcopylint.verify.slicing.asking import asked
from torchcopylint.verify.slicing.sizes import Setting

torch = pytest.importorskip("torch")
nn = torch.nn

PLAIN = Setting(4, 2, 0)
LAYERS = {
    "conv2d": lambda: nn.Conv2d(3, 5, 3),
    "conv1d": lambda: nn.Conv1d(7, 5, 3),
    "conv of groups": lambda: nn.Conv2d(8, 8, 3, groups=8),
    "large kernel": lambda: nn.Conv2d(4, 4, 11),
    "pooling": lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(8)),
    "linear": lambda: nn.Linear(10, 2),
    "batch norm": lambda: nn.BatchNorm2d(6),
    "layer norm": lambda: nn.LayerNorm(12),
    "recurrent": lambda: nn.LSTM(9, 3),
    "flat image": lambda: nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(784, 2)
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_gets_what_it_asks_for(name: str) -> None:
    layer = LAYERS[name]()
    setting = PLAIN
    for _ in range(8):
        shape = [setting.size] * setting.dimensions
        if setting.last:
            shape[-1] = setting.last
        if setting.second and setting.dimensions > 2:
            shape[1] = setting.second
        message = ""
        try:
            layer(torch.randn(shape))
        except (RuntimeError, ValueError) as error:
            message = str(error)
        if not message:
            return
        wanted = asked(setting, message, "y = layer(x)")
        assert wanted is not None, (setting, message)
        setting = wanted
    pytest.fail(f"{setting} does not do")


@pytest.mark.parametrize(
    "layer",
    [
        nn.Sequential(nn.Conv2d(3, 4, 11, stride=4), nn.MaxPool2d(3), nn.MaxPool2d(3)),
        nn.Sequential(nn.Conv2d(3, 4, 1), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(784, 2)),
    ],
)
def test_an_image_whose_channels_are_known_gets_the_side_that_is_asked_for(layer: Any) -> None:
    setting = PLAIN
    for _ in range(8):
        try:
            layer(torch.randn(2, 3, setting.spatial, setting.spatial))
        except RuntimeError as error:
            setting = asked(setting, str(error), "y = layer(x)") or setting
    layer(torch.randn(2, 3, setting.spatial, setting.spatial))


def test_what_says_nothing_of_inputs_changes_nothing() -> None:
    assert asked(PLAIN, "'NoneType' object has no attribute 'data'", "y = x.item().data") is None
    assert asked(PLAIN, "a leaf Variable that requires grad is being used in an in-place operation", "x += 1") is None
    assert asked(PLAIN, "mat1 and mat2 shapes cannot be multiplied (4x4 and 999999x2)", "y = layer(x)") is None


def test_who_reads_gradients_gets_some() -> None:
    wanted = asked(PLAIN, "'NoneType' object has no attribute 'data'", "norm += p.grad.data.norm()")
    assert wanted is not None
    assert wanted.graded
    assert asked(wanted, "'NoneType' object has no attribute 'data'", "norm += p.grad.data.norm()") is None


def test_what_is_cut_into_parts_is_as_long_as_all_of_them_ask() -> None:
    message = "not enough values to unpack (expected 3, got 2)"
    wanted = asked(PLAIN, message, "enter, leave, new = gates.chunk(3, 1)")
    assert wanted is not None
    assert wanted.size == 12
    assert asked(wanted, "not enough values to unpack (expected 4, got 3)", "a, b, c, d = x.chunk(4, 1)") is None
    assert asked(PLAIN, message, "enter, leave, new = gates") is None


@pytest.mark.parametrize(("side", "given", "wanted"), [(32, 1280, 28), (28, 20, 32), (28, 1280, 1)])
def test_an_image_that_one_point_is_left_of_has_a_usual_side(side: int, given: int, wanted: int) -> None:
    message = f"shape '[4, 10]' is invalid for input of size {given}"
    setting = asked(Setting(side, 4, 0), message, "out.view(out.size(0), 10)")
    assert setting is not None
    assert (setting.size, setting.spatial) == (wanted, wanted)


def test_what_is_a_part_of_an_input_has_the_index_that_is_asked_for() -> None:
    x = torch.zeros(PLAIN.size, PLAIN.size)
    with pytest.raises(IndexError) as refused:
        x[:, 1:][:, [1, 3]]
    wanted = asked(PLAIN, str(refused.value), "x[:, 1:][:, [1, 3]]")
    assert wanted is not None
    torch.zeros(wanted.size, wanted.size)[:, 1:][:, [1, 3]]


def test_a_size_that_grows_with_the_square_of_another_is_one() -> None:
    x = torch.zeros(PLAIN.size, PLAIN.size)
    with pytest.raises(RuntimeError) as refused:
        x.repeat(1, PLAIN.size) - x
    wanted = asked(PLAIN, str(refused.value), "x.repeat(1, n) - x")
    assert wanted is not None
    assert wanted.size == 1


def test_what_meets_doubles_is_double() -> None:
    with pytest.raises(RuntimeError) as refused:
        torch.zeros(2, 2) @ torch.zeros(2, 2, dtype=torch.float64)
    wanted = asked(PLAIN, str(refused.value), "x @ w")
    assert wanted is not None
    assert wanted.dtype == "float64"
