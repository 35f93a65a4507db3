"""Queries and schema files to start from, and events to try them on; installed with the package.

>>> import uncertain_cep as uc
>>> uc.examples.names()
['chemotherapy', 'cluster', 'nezha', 'spark_eventlogs', 'yahoo_hadoop']
>>> events = uc.examples.events("chemotherapy")
>>> query = uc.examples.queries("chemotherapy")["low_blood_count"]
>>> uc.match(events, query).num_rows > 0
True
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["events", "folder", "names", "queries"]

_INSTALLED: Final = Path(__file__).parent / "datasets"
_ROOT: Final = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[1] / "datasets"
_GENERATED: Final = "cluster"
_MINUTES, _NODES, _SEED = 10, 4, 2010


@public
def names() -> list[str]:
    """Return the names of the examples; datasets/README.md says what each is.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> "cluster" in uc.examples.names()
    True
    """
    return sorted(file.parent.name for file in _ROOT.glob("*/schema.toml"))


@public
def folder(name: str) -> Path:
    """Return the folder of an example: schema.toml, queries, and for some the trace.

    Raises
    ------
    OptionError
        If there is no such example.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> (uc.examples.folder("cluster") / "schema.toml").is_file()
    True
    """
    if name not in names():
        raise OptionError(f"there is no example {name!r}: they are {', '.join(names())}")
    return _ROOT / name


@public
def queries(name: str) -> dict[str, str]:
    """Return the text of each query of an example, by the name of its file.

    Raises
    ------
    OptionError
        If there is no such example.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> list(uc.examples.queries("chemotherapy"))
    ['low_blood_count']
    """
    return {file.stem: file.read_text(encoding="utf-8") for file in sorted(folder(name).glob("*.query"))}


@public
def events(name: str) -> pa.Table:
    """Return the events of an example, with intervals.

    Parameters
    ----------
    name : str
        ``"chemotherapy"``, or ``"cluster"``: ten simulated minutes of four machines.

    Raises
    ------
    OptionError
        If there is no such example, or its trace is a public one that is not installed.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> uc.examples.events("chemotherapy").num_rows > 100
    True
    """
    from uncertain_cep.traces import load_schema, read_traces
    from uncertain_cep.traces.cluster import cluster_trace, write_cluster

    place = folder(name)
    schema = load_schema(place / "schema.toml")
    if traces := sorted(place.glob("*.csv")):
        return read_traces(traces, schema)
    if name != _GENERATED:
        raise OptionError(
            f"the trace of {name!r} is not installed: datasets/README.md says where it is, and read_traces "
            f"reads it with the schema in {place}"
        )
    with tempfile.TemporaryDirectory() as trace:
        write_cluster(Path(trace), cluster_trace(_MINUTES, _NODES, _SEED))
        return read_traces(trace, schema)
