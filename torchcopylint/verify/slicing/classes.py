"""The texts of classes that stand in for those from elsewhere, as they go into a script that needs one."""

from __future__ import annotations

CLASSES = {
    "Batches": '''
class Batches(list):
    """A loader with two batches."""
''',
    "Progress": '''
class Progress:
    """A bar that shows how far a loop is: what it goes through, and nothing else."""

    def __init__(self, given=(), *others, **named):
        self.given = given

    def __iter__(self):
        return iter(self.given)

    def __len__(self):
        return len(self.given)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *given, **named: None
''',
    "Keyed": '''
class Keyed(dict):
    """A dict that has a tensor under every key."""

    def __missing__(self, key):
        self[key] = torch.rand(1)
        return self[key]
''',
    "Options": '''
class Options(dict):
    """Settings: what is under a key is an attribute as well."""

    def __init__(self, *given, **named):
        super().__init__()
        for key, value in dict(*given, **named).items():
            self[key] = value

    def __setitem__(self, key, value):
        super().__setitem__(key, Options(value) if type(value) is dict else value)

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]

    __setattr__ = __setitem__
''',
    "Environment": '''
class Environment:
    """An environment that gives random observations and ends an episode after three steps."""

    def __init__(self, results):
        self.results, self.time = results, 0
        self.observation_space = self.action_space = self
        self.shape, self.n, self.spec = (SAMPLE,), SIZE, None
        self.high, self.low = np.ones((SAMPLE,), dtype=np.float32), -np.ones((SAMPLE,), dtype=np.float32)

    def observe(self):
        return np.random.randn(*self.shape).astype(np.float32)

    def sample(self):
        return 0

    def seed(self, *given):
        return [0]

    def render(self, *given, **named):
        return np.zeros((SIZE, SIZE, 3), dtype=np.uint8)

    def close(self):
        pass

    def reset(self, *given, **named):
        self.time = 0
        return (self.observe(), {}) if self.results == 5 else self.observe()

    def step(self, action):
        self.time += 1
        done = self.time >= 3
        return (self.observe(), 1.0, done, False, {}) if self.results == 5 else (self.observe(), 1.0, done, {})
''',
    "Location": '''
class Location(str):
    """Stands in for a path of which the file system is never asked."""

    def __new__(cls, *parts):
        return str.__new__(cls, "/".join(str(part) for part in parts) or ".")

    def __truediv__(self, other):
        return Location(self, other)

    def __rtruediv__(self, other):
        return Location(other, self)

    @property
    def parent(self):
        return Location(self.rpartition("/")[0] or ".")

    @property
    def name(self):
        return self.rpartition("/")[2]

    @property
    def stem(self):
        return self.name.rpartition(".")[0] or self.name

    @property
    def suffix(self):
        return "." + self.name.rpartition(".")[2] if "." in self.name else ""

    @property
    def parts(self):
        return tuple(self.split("/"))

    @property
    def parents(self):
        return [self.parent] * 8

    def with_suffix(self, suffix):
        return self.parent / (self.stem + suffix)

    def with_name(self, name):
        return self.parent / name

    def itself(self, *given, **named):
        return self

    resolve = absolute = expanduser = relative_to = as_posix = itself

    def nothing(self, *given, **named):
        return None

    mkdir = touch = unlink = rmdir = rename = write_text = write_bytes = nothing

    def none(self, *given):
        return []

    iterdir = glob = rglob = none

    def exists(self):
        return True

    is_file = is_dir = exists

    def joinpath(self, *others):
        return Location(self, *others)

    def read_text(self, *given, **named):
        return ""

    def open(self, *given, **named):
        return Anything("file")

    @classmethod
    def cwd(cls):
        return cls(".")

    home = cwd
''',
    "Anything": '''
class Anything:
    """Stands in for something from elsewhere of which nothing is known."""

    def __init__(self, name, /, **fields):
        self.__dict__["standin_name"] = name
        self.__dict__.update(fields)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "device":
            return torch.tensor(0).device
        return Anything(f"{self.standin_name}.{name}")

    def __call__(self, *given, **named):
        if len(given) == 1 and not named and (isinstance(given[0], type) or type(given[0]).__name__ == "function"):
            return given[0]
        if any(torch.is_tensor(value) for value in given) and not self.standin_name.startswith("os."):
            # What is called a loss gives one number, if nothing says otherwise.
            one = "loss" in self.standin_name.lower() or "criterion" in self.standin_name.lower()
            return blend(*given).mean() if one else blend(*given)
        if self.standin_name.endswith("numpy"):
            return np.random.randn(SIZE, SIZE).astype(np.float32)
        return Anything(f"{self.standin_name}()")

    @classmethod
    def __torch_function__(cls, function, kinds, given=(), named=None):
        # What a function of torch is given is a tensor; what a tensor is given may be anything.
        if type(function).__name__.endswith("descriptor"):
            return NotImplemented
        named = {key: cls._tensor(value) for key, value in (named or {}).items()}
        return function(*[cls._tensor(value) for value in given], **named)

    @classmethod
    def _tensor(cls, value):
        if isinstance(value, (list, tuple)):
            return type(value)([cls._tensor(part) for part in value])
        if type(value) is not cls:
            return value
        if "standin_tensor" not in value.__dict__:
            value.__dict__["standin_tensor"] = torch.randn(SIZE, SIZE)
        return value.__dict__["standin_tensor"]

    def __array__(self, dtype=None, copy=None):
        # What has a length and items without end is gone through for ever where an array is made of it.
        return np.random.randn(SIZE, SIZE).astype(np.float32 if dtype is None else dtype)

    def __iter__(self):
        return iter((self, self))

    def __next__(self):
        return self

    def __instancecheck__(self, other):
        return type(other) is Anything and other.standin_name == f"{self.standin_name}()"

    def __getitem__(self, key):
        if type(key) is str and key in self.__dict__:
            return self.__dict__[key]
        # As a dataset it has samples with a class each.
        return (torch.randn(SAMPLE), key % 2) if type(key) is int else self

    def __setitem__(self, key, value):
        pass

    def __contains__(self, key):
        return False

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False

    def __len__(self):
        return 2

    def __bool__(self):
        return True

    def __index__(self):
        return 1

    def __float__(self):
        return 1.0

    def __str__(self):
        return self.standin_name

    def __format__(self, how):
        return self.standin_name

    def __fspath__(self):
        return self.standin_name

    def _itself(self):
        return self

    __neg__ = __pos__ = __abs__ = __invert__ = _itself

    def _number(self, other):
        return other if isinstance(other, (int, float)) or torch.is_tensor(other) else self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _number
    __floordiv__ = __mod__ = __pow__ = __and__ = __or__ = _number

    __rfloordiv__ = _number

    def __rmod__(self, other):
        # What happens every so many turns happens in each.
        return 0 if isinstance(other, (int, float)) else self

    def __round__(self, *given):
        return self

    def _less_or_more(self, other):
        return False

    def _alike(self, other):
        return True

    __lt__ = __gt__ = _less_or_more
    __le__ = __ge__ = _alike
''',
    "Elsewhere": '''
class Elsewhere:
    """Stands in for a base class from elsewhere: it keeps what it is given by name, and has every other attribute."""

    def __init__(self, *given, **named):
        self.__dict__.update(named)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name)
''',
    "LayerElsewhere": '''
class LayerElsewhere(torch.nn.Module):
    """Stands in for a layer that a base class from elsewhere has made."""

    NAMES = LAYER_NAMES

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(()))

    def forward(self, *given, **named):
        return blend(*given) * self.weight
''',
    "ModuleElsewhere": '''
class ModuleElsewhere(torch.nn.Module):
    """Stands in for a base class from elsewhere that is a module: it keeps what it is given by name, and has every
    other attribute."""

    def __init__(self, *given, **named):
        super().__init__()
        for name, value in named.items():
            setattr(self, name, value)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_"):
                raise
            if name.rstrip("0123456789_").rpartition("_")[2] in LayerElsewhere.NAMES:
                self._modules[name] = LayerElsewhere()
                return self._modules[name]
            return Anything(name)
''',
}
