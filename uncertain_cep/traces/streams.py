"""The synthetic stream of the paper: repeating values, one event a tick, uncertain times."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from uncertain_cep.errors import OptionError

__all__ = ["value_stream"]

_LAST_TICK = 2**62


def value_stream(
    n: int,
    half_interval: int = 5,
    series: int = 1000,
    keys: int | None = None,
    seed: int | None = None,
    spacing: int = 1,
    long_share: float = 0.0,
    long_half_interval: int = 2000,
) -> pa.Table:
    """Return the event stream of section 5.1 of the paper, with its parameters and three more.

    Event i happened around the tick ``t = i * spacing``, somewhere in ``[t - half_interval,
    t + half_interval]``; its value is ``i % series + 1``, so the values rise from 1 to `series` and start
    again. With `keys`, event i belongs to key ``i % keys`` and is event ``i // keys`` of that key's own
    stream: each key by itself sees what the whole stream is without keys.

    Parameters
    ----------
    n : int
        Number of events, 0 or more.
    half_interval : int
        Half the length of an uncertainty interval (the paper's delta), in ticks, 0 or more.
    series : int
        Largest value, 1 or more.
    keys : int or None
        Number of keys, 1 or more. None: one stream, no column ``key``.
    seed : int or None
        Chooses the events that get the long interval; the same seed gives the same stream. None: 0.
    spacing : int
        Ticks from one event of a key to the next, 1 or more.
    long_share : float
        Probability with which an event gets `long_half_interval` instead, 0 to 1.
    long_half_interval : int
        Half the length of a long interval, in ticks, 0 or more.

    Returns
    -------
    pyarrow.Table
        ``type`` string, always ``E``; ``id`` int64, 0 to n - 1; ``lower``, ``upper`` int64, ticks,
        inclusive (the first ones are negative); ``value`` int64; with `keys` also ``key`` int64.

    Raises
    ------
    OptionError
        If a parameter is out of range, or the times do not fit in int64.

    Notes
    -----
    O(n) time; 40 bytes an event, 48 with keys.
    Source: Zhang, Diao, Immerman, PVLDB 3(1), 2010, section 5.1.
    """
    limits = {"n": (n, 0), "half_interval": (half_interval, 0), "series": (series, 1),
              "spacing": (spacing, 1), "long_half_interval": (long_half_interval, 0),
              "keys": (1 if keys is None else keys, 1), "seed": (seed or 0, 0)}  # fmt: skip
    for name, (value, smallest) in limits.items():
        if value < smallest:
            raise OptionError(f"{name} must be {smallest} or more, not {value}")
    if not 0 <= long_share <= 1:
        raise OptionError(f"long_share must be from 0 to 1, not {long_share}")
    if n * spacing + max(half_interval, long_half_interval) > _LAST_TICK:
        raise OptionError("n * spacing is too long for int64 ticks: choose fewer events or a shorter spacing")

    ids = np.arange(n, dtype=np.int64)
    position = ids if keys is None else ids // keys
    time = position * spacing
    half: np.ndarray | int = half_interval
    if long_share > 0:
        is_long = np.random.default_rng(seed or 0).random(n) < long_share
        half = np.where(is_long, np.int64(long_half_interval), np.int64(half_interval))
    columns = {
        "type": pa.repeat("E", n),
        "id": ids,
        "lower": time - half,
        "upper": time + half,
        "value": position % series + 1,
    }
    if keys is not None:
        columns["key"] = ids % keys
    return pa.table(columns)
