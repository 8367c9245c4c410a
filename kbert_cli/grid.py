"""The settings of fine-tuning that are tried, those of the paper among them."""

import enum
import itertools
from typing import NamedTuple


class Search(enum.StrEnum):
    """Which settings are tried."""

    none = "none"
    rates = "rates"
    grid = "grid"


# Devlin et al. 2018, section 4.1 and appendix A.3.
_SEEDS = 1 << 32
_RATES = (5e-5, 4e-5, 3e-5, 2e-5)
_GRID = {
    "batch_size": (16, 32),
    "learning_rate": (5e-5, 3e-5, 2e-5),
    "epochs": (2, 3, 4),
}


class Setting(NamedTuple):
    """What differs between runs.

    Args:
        learning_rate: the peak.
        epochs: passes over the data.
        batch_size: examples a step.
        seed: of the head's first weights, the order and dropout.
    """

    learning_rate: float
    epochs: int
    batch_size: int
    seed: int

    def __str__(self):
        """The setting as people write it."""
        return (
            f"learning rate {self.learning_rate:g}, {self.epochs} "
            f"epoch{'s' * (self.epochs != 1)}, batches of {self.batch_size}, seed "
            f"{self.seed}"
        )


def settings_of(chosen: Setting, search: Search, restarts: int) -> list[Setting]:
    """Returns the settings to try, those of one seed after those of another.

    Args:
        chosen: the setting without a search; its seed is the first.
        search: "rates" for the four learning rates of section 4.1, "grid" for the
            grid of appendix A.3.
        restarts: how many seeds.

    Raises:
        ValueError: if a seed would be beyond what generators take.
    """
    if chosen.seed + restarts > _SEEDS:
        raise ValueError(
            f"Seeds must be below {_SEEDS}. Received: {restarts} from {chosen.seed} on."
        )
    lists: dict[str, tuple] = {key: (value,) for key, value in chosen._asdict().items()}
    if search == Search.rates:
        lists["learning_rate"] = _RATES
    elif search == Search.grid:
        lists |= _GRID
    lists["seed"] = tuple(range(chosen.seed, chosen.seed + restarts))
    names = ("seed", "batch_size", "learning_rate", "epochs")
    products = itertools.product(*(lists[name] for name in names))
    return [Setting(**dict(zip(names, values, strict=True))) for values in products]
