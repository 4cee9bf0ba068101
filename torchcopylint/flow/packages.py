"""What a file deals in, by what it imports."""

from __future__ import annotations

from torchcopylint.flow import kinds
from torchcopylint.flow import tape as t

_ARRAY_PACKAGES = kinds.OTHER_FRAMEWORKS | {
    *("numpy", "pandas", "polars", "scipy", "sklearn", "xarray", "h5py", "zarr", "cupy", "numba", "dask", "pyarrow"),
    *("cv2", "skimage", "imageio", "librosa", "soundfile", "matplotlib", "nibabel", "tifffile", "netCDF4", "datasets"),
    *("gym", "gymnasium"),
}
"""Packages that hand out what is sliced like a tensor and is none."""
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
    packages: set[str] = set()
    for event in (event for unit in program.units for event in unit.definitions):
        if isinstance(event, t.Import):
            packages.add(event.dotted.partition(".")[0])
        elif isinstance(event, t.Attribute | t.Invoke) and event.name in _ARRAY_NAMES:
            return False
    return "torch" in packages and not packages & _ARRAY_PACKAGES
