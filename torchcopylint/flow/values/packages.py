"""What a file deals in, by what it imports."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.values import kinds

_ARRAY_PACKAGES = kinds.OTHER_FRAMEWORKS | {
    *("numpy", "pandas", "polars", "scipy", "sklearn", "xarray", "h5py", "zarr", "cupy", "numba", "dask", "pyarrow"),
    *("cv2", "skimage", "imageio", "librosa", "soundfile", "matplotlib", "nibabel", "tifffile", "netCDF4", "datasets"),
    *("gym", "gymnasium"),
}
"""Packages that hand out what is sliced like a tensor and is none."""
_COPYING_PACKAGES = kinds.OTHER_FRAMEWORKS | {
    *("polars", "xarray", "h5py", "zarr", "dask", "pyarrow", "netCDF4", "datasets", "numba", "cupy", "scipy.sparse"),
}
"""Packages that hand out what has dimensions and gives copies, or no memory at all, where it is sliced."""
FETCHING = frozenset(
    {"h5py", "zarr", "netCDF4", "tables", "lmdb", "datasets", "pyarrow", "polars", "dask", "webdataset"}
)
"""Packages whose files and tables make what is asked of them when it is asked."""
_ARRAY_NAMES = frozenset(
    {
        "numpy",
        "to_numpy",
        "from_numpy",
        "as_tensor",
        "from_dlpack",
        "frombuffer",
        "loc",
        "iloc",
        "iterrows",
        "itertuples",
    }
)
"""Attributes that show that a file deals in arrays or frames as well, though it imports nothing for that."""


def deals_in_tensors_only(program: t.Program) -> bool:
    """Whether a file imports torch, and nothing from which arrays or frames come."""
    if any(
        (event.__class__ is t.Attribute or event.__class__ is t.Invoke) and event.name in _ARRAY_NAMES
        for unit in program.units
        for event in unit.definitions
    ):
        return False
    packages = _imported(program, 1)
    return "torch" in packages and not packages & _ARRAY_PACKAGES


def deals_in_memory(program: t.Program) -> bool:
    """Whether a file imports torch or NumPy, and nothing that hands out what only looks like an array when sliced."""
    packages = _imported(program, 2)
    return bool(packages & {"torch", "numpy"}) and not packages & _COPYING_PACKAGES


def _imported(program: t.Program, parts: int) -> set[str]:
    """The packages that a file imports, by up to so many parts of their names."""
    dotted = (
        event.dotted.split(".") for unit in program.units for event in unit.definitions if event.__class__ is t.Import
    )
    return {".".join(names[:count]) for names in dotted for count in range(1, parts + 1)}
