"""The paper's synthetic panels: seven sites, nine sites, and a wedge on a grid. Periods are independent draws."""

import numpy as np
import pandas as pd

SEVEN_MEANS = (10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 100.0)
# (name, events if there are any, probability of any) of the nine sites: A always, B often, C seldom and many
NINE_SITES = tuple(
    (f"{kind}{i}", size, chance)
    for kind, size, chance in (("A", 7, 1.0), ("B", 10, 0.65), ("C", 80, 0.1))
    for i in (1, 2, 3)
)
GRID = 40
STEP = 0.01  # degrees between cells of the wedge


def seven_sites(n_periods: int, generator: np.random.Generator) -> pd.DataFrame:
    """Counts max(0, round(N(mean, 0.3²))), means 10, 20, …, 60, 100: columns site, period, count.

    Source: Heuton et al., ICML 2025, one-dimensional example; BPR-5 in a model that must share its components.
    """
    draws = generator.normal(SEVEN_MEANS, 0.3, (n_periods, len(SEVEN_MEANS)))
    return _table([str(s + 1) for s in range(len(SEVEN_MEANS))], np.maximum(np.round(draws), 0.0))


def nine_sites(n_periods: int, generator: np.random.Generator) -> pd.DataFrame:
    """Independent sites A (always 7), B (10 with probability .65) and C (80 with probability .1), three of each.

    Ranking by the mean prefers C (8) to A (7) and B (6.5); ranking by the ratio is right. Source: as above.
    """
    names, sizes, chances = zip(*NINE_SITES, strict=True)
    happens = generator.random((n_periods, len(names))) < np.array(chances)
    return _table(list(names), happens * np.array(sizes, dtype=np.float64))


def wedge(n_periods: int, generator: np.random.Generator) -> pd.DataFrame:
    """40 × 40 cells around the origin: a wedge whose value falls from 14 to 9 over the polar angles 45° to 90°, a narrow
    band of 20 at 272° to 280°, 0 elsewhere; counts max(0, round(value + N(0, 0.5²))).

    Columns more: latitude, longitude (grid of 0.01°); cos, sin of the angle and radius in cells, as features.
    Source: Heuton's thesis, spatial synthetic example.
    """
    y, x = (axis.ravel() - (GRID - 1) / 2 for axis in np.indices((GRID, GRID), dtype=np.float64))
    angle = np.degrees(np.arctan2(y, x)) % 360
    value = wedge_value(angle)
    draws = generator.normal(value, 0.5, (n_periods, len(value)))
    names = [f"{row:02d}-{column:02d}" for row in range(GRID) for column in range(GRID)]
    more = {
        "latitude": np.round(y * STEP, 6),
        "longitude": np.round(x * STEP, 6),
        "cos": np.cos(np.radians(angle)),
        "sin": np.sin(np.radians(angle)),
        "radius": np.hypot(x, y),
    }
    table = _table(names, np.maximum(np.round(draws), 0.0))
    return table.assign(**{name: np.tile(column, n_periods) for name, column in more.items()})


def wedge_value(angle: np.ndarray) -> np.ndarray:
    """Expected count before noise at a polar angle in degrees, 0 to 360.

    >>> wedge_value(np.array([0.0, 45.0, 90.0, 276.0])).tolist()
    [0.0, 14.0, 9.0, 20.0]
    """
    falling = 14 - 5 * (angle - 45) / 45
    return np.select([(angle >= 45) & (angle <= 90), (angle >= 272) & (angle <= 280)], [falling, 20.0], 0.0)


def _table(sites: list[str], counts: np.ndarray) -> pd.DataFrame:
    n_periods = len(counts)
    width = len(str(n_periods))
    periods = [f"{t + 1:0{width}d}" for t in range(n_periods)]
    return pd.DataFrame(
        {"site": np.tile(sites, n_periods), "period": np.repeat(periods, len(sites)), "count": counts.ravel()}
    )
