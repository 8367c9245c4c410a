"""An array in a file: its shape is known at once, its numbers are read when asked."""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

# As TensorFlow and HDF5 spell them, and numpy.
FLOATS = {name: name for name in ("bfloat16", "float16", "float32", "float64")}


@dataclasses.dataclass(frozen=True, eq=False)
class StoredArray:
    """An array in a file, read when numpy asks for it.

    Args:
        where: the array's name and its file, for messages.
        dtype: as the file spells it.
        shape: of the array that `read` returns.
        read: returns the numbers, in any dtype that numpy has.
        floats: the dtypes that a weight may have in such a file: numpy's names of them.
    """

    where: str
    dtype: str
    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]
    floats: Mapping[str, str] = dataclasses.field(default_factory=lambda: FLOATS)

    @property
    def number(self) -> str:
        """What the file holds there, as numpy calls it."""
        return self.floats.get(self.dtype, self.dtype)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        """Returns the array as float32, or as `dtype`.

        Raises:
            ValueError: as `check_dtype`, or if the file is damaged.
        """
        self.check_dtype()
        numbers = np.asarray(self.read())
        return numbers.astype(dtype or np.float32, copy=bool(copy))

    def reshaped(self, shape: tuple[int, ...]) -> "StoredArray":
        """Returns the array with its numbers in another shape."""

        def read() -> np.ndarray:
            return self.read().reshape(shape)

        return dataclasses.replace(self, shape=shape, read=read)

    def check_dtype(self) -> None:
        """Raises ValueError if the file holds no floating-point numbers there."""
        if self.dtype not in self.floats:
            raise ValueError(
                f"A weight must be stored as one of {sorted(self.floats)}. "
                f"Received: {self.dtype} for {self.where}."
            )
