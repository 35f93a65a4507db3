"""Files to one table of events: what ``uncertain_cep.read_traces`` is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from uncertain_cep.boundary import public
from uncertain_cep.errors import warn
from uncertain_cep.traces.raw_stamps import NO_STAMPS, with_raw_stamps
from uncertain_cep.traces.reading import GivenSchema, Paths, load_traces

__all__ = ["read_traces"]


@public
def read_traces(
    paths: Paths,
    schema: GivenSchema = None,
    *,
    format: str | None = None,
    tick: str | None = None,
    raw_stamps: bool = False,
    spans: bool = False,
) -> pa.Table:
    """Read files into one table of events.

    Parameters
    ----------
    paths : path or sequence of paths
        CSV, JSON lines or Parquet files (text also compressed), files of a format that is known by itself, or
        folders of such files.
    schema : path, TraceSchema or None
        A schema file, or what `load_schema` made of one. None for files whose columns are those of the model
        (type, id, lower and upper; if wanted pmf, probability, tick and those of clocks: source,
        offset_lower, offset_upper, offset_pmf, sequence, ordered), and for formats known by themselves.
    format : str, optional
        What all files are, whatever their names; folders are then read whole. It is one of ``csv``, ``tsv``,
        ``json``, ``jsonl``, ``ndjson``, ``parquet``, ``pq``, or a format known by itself:
        ``spark-eventlog`` and others, see docs/formats.md.
        Whether text is compressed is always told by the name. Default: by the name of each file, and in
        folders only those of known names; a format known by itself is also found out by what is in a file.
    tick : str or None
        Length of a tick, such as ``1ms``. Default: what the schema, the files or their format say, else
        1us; a day where all stamps are dates.
    raw_stamps : bool
        Whether to add a column ``stamp`` of the stamps of which the schema makes intervals, null where a row
        has none. :func:`uncertain_cep.report` compares its answer with them. The files are read twice.
    spans : bool
        Whether begins and ends of formats known by themselves, such as ``TaskStart`` and ``TaskEnd``, become
        events that last, ``Task``. With a schema its key ``spans`` says so.

    Returns
    -------
    pyarrow.Table
        Columns ``type`` (string), ``id`` (int64 or string), ``lower`` and ``upper`` (int64 ticks or
        timestamps), ``pmf`` (list of double, null for uniform) if there are any, ``tick`` (string), unless
        the times are plain ticks of no named length, ``probability`` if there are any, then the attributes.
        Whether ids are unique is not checked, since that depends on the partition.

    Raises
    ------
    TraceError
        With every fault found: file, row, column and value.
    OptionError
        If an option has no such value.

    Warns
    -----
    UncertainCepWarning
        If the format of a file is found out by what is in it; if an ``[extract]`` names a column that no file
        has, or is never found; if stamps with a time zone and others without are put together; if certain
        times that differ are now in one tick, so that none is before the other; if raw stamps are asked for
        and cannot be told.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> folder = uc.examples.folder("chemotherapy")
    >>> events = uc.read_traces(folder / "treatments.csv", folder / "schema.toml")
    >>> events.column_names[:4]
    ['type', 'id', 'lower', 'upper']
    """
    if not raw_stamps:
        return load_traces(paths, schema, format=format, tick=tick, spans=spans).sound()
    sources = paths if isinstance(paths, (str, Path)) else list(paths)
    loaded = load_traces(sources, schema, format=format, tick=tick, spans=spans)
    loaded.sound()
    table, name = with_raw_stamps(loaded, sources, schema, format)
    if name is None:
        warn(NO_STAMPS)
    return table
