"""The texts of helpers: what stands in for things from elsewhere, as it goes into a script that needs it."""

from __future__ import annotations

from torchcopylint.verify.slicing.classes import CLASSES

HELPERS = {
    "io": "\nimport io\n",
    "respond": '''
def respond(layer, inputs, scale=1.0):
    """What a model of two layers that stands in answers: a scaling, and its layer where the last dimension fits."""
    given = next((value for value in inputs if torch.is_tensor(value)), None)
    if given is None:
        given = torch.ones(1, layer.in_features, device=layer.weight.device)
    given = given if given.is_floating_point() else given.float()
    if given.dtype != layer.weight.dtype:
        given = given.to(layer.weight.dtype)
    if given.dim() and given.shape[-1] == layer.in_features:
        return layer(given * scale)
    return given * scale * scale + (layer.bias if layer.bias is not None else layer.weight).mean()
''',
    "blend": '''
def blend(*given):
    """What a function that stands in computes: something of all the tensors and modules that it is given, shaped as the
    first tensor."""
    tensors = [value for value in given if torch.is_tensor(value)]
    tensors = [value if value.is_floating_point() else value.float() for value in tensors]
    modules = [value for value in given if isinstance(value, torch.nn.Module)]
    more = [*tensors[1:], *(part for module in modules for part in module.parameters() if part.is_floating_point())]
    first = tensors[0] * 1.0 if tensors else torch.randn(SIZE, SIZE)
    return first + sum((value.mean() for value in more), 0.0)
''',
    "on_gpu": '''
class OnGpu(torch.Tensor):
    """What a GPU would hold: what is computed with it is there as well, and what comes back is a copy."""

    def cpu(self, *given, **named):
        return self.detach().clone().as_subclass(torch.Tensor) if not self.requires_grad else self.clone()

    def to(self, *given, **named):
        away = "cpu" in map(str, (*given, *named.values()))
        return self.cpu() if away else super().to(*given, **named)


def on_gpu(value):
    """A tensor as it is after it was moved to a GPU."""
    return value.clone().as_subclass(OnGpu) if type(value) is torch.Tensor else value
''',
    "in_two": '''
def in_two(*given, **named):
    """Two parts of each thing, as somebody trains with the one and tests with the other."""
    return [part for value in given for part in (value[::2], value[1::2])]
''',
    "trained": '''
def trained(size):
    """Two parameters with gradients, as an optimizer finds them."""
    given = [torch.nn.Parameter(torch.randn(size, size)), torch.nn.Parameter(torch.randn(size))]
    for parameter in given:
        parameter.grad = torch.randn_like(parameter)
    return given
''',
    "give_gradients": '''
def give_gradients(module):
    """Give the parameters of a module gradients, as after a backward pass; of other objects, the fields."""
    if not isinstance(module, torch.nn.Module):
        fields = [value for value in vars(module).values() if torch.is_tensor(value) and value.requires_grad]
        if fields:
            sum(value.sum() for value in fields).backward()
        return
    for parameter in module.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.randn_like(parameter)
''',
    "numbers": '''
def numbers(value):
    """The numbers of what stands in for something that holds some, anything else as it is."""
    return value.__array__() if type(value).__name__ == "Anything" else value
''',
    "descent": '''
def descent(module):
    """An optimizer of the parameters of a module, or of one of its own where there are none."""
    return torch.optim.SGD(list(module.parameters()) or [torch.nn.Parameter(torch.zeros(1))], lr=0.1)
''',
    "renewed": '''
def renewed(value):
    """Another one of a tensor or array, with a graph of its own if it has one, as each turn of a loop makes one."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if not torch.is_tensor(value):
        return type(value)(map(renewed, value)) if type(value) in (list, tuple) else value
    other = value.detach().clone()
    other.requires_grad_(value.requires_grad)
    return other if value.is_leaf else other * 1.0
''',
    "first_time": '''
def first_time(row, seen=set()):
    """Whether a condition is met for the first time."""
    if row in seen:
        return False
    seen.add(row)
    return True
''',
    "few": '''
def few(numbers):
    """The first turns of a long loop."""
    return numbers if len(numbers) <= 8 else numbers[:3]
''',
    **CLASSES,
    "without_init": '''
def without_init(cls, **fields):
    """An object of a class with some fields, made without running its `__init__`."""
    thing = cls.__new__(cls)
    if isinstance(thing, torch.nn.Module):
        torch.nn.Module.__init__(thing)
    for name, value in fields.items():
        setattr(thing, name, value)
    return thing
''',
    "ArgumentParser": '''
class ArgumentParser:
    """Gives every option its default, but for those that have to be another for the steps to be reached."""

    def __init__(self, *given, **named):
        self.values = {}

    def add_argument(self, *names, default=None, dest=None, action=None, type=None, nargs=None, choices=None, **named):
        longest = max(names, key=len)
        if default is None and action in ("store_true", "store_false"):
            default = action == "store_false"
        elif default is None and not longest.startswith("-"):
            default = choices[0] if choices else 1 if type in (int, float) else longest
        elif isinstance(default, str) and callable(type):
            default = type(default)
        name = (dest or longest.lstrip("-")).replace("-", "_")
        if isinstance(default, bool):
            default = TRUTHS.get(name, default)
        elif isinstance(default, (int, float)):
            default = max(default, LEAST.get(name, default))
        self.values[name] = default

    def add_argument_group(self, *given, **named):
        return self

    add_mutually_exclusive_group = add_argument_group

    def set_defaults(self, **named):
        self.values.update(named)

    def parse_args(self, *given):
        wanted = WANTED
        return types.SimpleNamespace(**{**self.values, **{key: wanted[key] for key in wanted if key in self.values}})

    def parse_known_args(self, *given):
        return self.parse_args(), []
''',
    "change": '''
def change(*things):
    """Writes whatever memory some things hold, in place, as later training would."""
    pending = list(things)
    with torch.no_grad():
        while pending:
            thing = pending.pop()
            if isinstance(thing, torch.nn.Module):
                pending.extend(thing.state_dict().values())
            elif isinstance(thing, dict):
                pending.extend(thing.values())
            elif isinstance(thing, (list, tuple)):
                pending.extend(thing)
            elif torch.is_tensor(thing):
                thing.add_(1)
            elif isinstance(thing, np.ndarray):
                thing += 1
''',
    "use_later": '''
def use_later(function, *given):
    """Calls a function with what has a graph, and goes on with what it was given. Returns the leaves."""
    floating = [torch.is_tensor(value) and value.is_floating_point() for value in given]
    leaves = [(torch.randn_like(value) * 10).requires_grad_() if f else value for f, value in zip(floating, given)]
    passed = [value * 1.0 if f else value for f, value in zip(floating, leaves)]
    backpropagate([function(*passed), *(value * value for f, value in zip(floating, passed) if f)])
    return leaves
''',
    "backpropagate": '''
def backpropagate(result):
    """Runs backward over whatever a call returned."""
    found, pending = [], [result]
    while pending:
        value = pending.pop()
        if torch.is_tensor(value):
            found.append(value)
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, (list, tuple)):
            pending.extend(value)
    losses = [(value * 1.0).sum() for value in found if value.requires_grad and value.is_floating_point()]
    if losses:
        sum(losses).backward()
''',
}
NEEDS = {
    "ModuleElsewhere": ("LayerElsewhere", "Anything", "blend"),
    "Elsewhere": ("Anything", "blend"),
    "Location": ("Anything", "blend"),
    "Anything": ("blend",),
}
"""The helpers that a helper needs."""
