"""How the text of files is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from uncertain_cep.errors import OptionError
from uncertain_cep.traces.extracting import Extraction
from uncertain_cep.traces.message_templates import Templates
from uncertain_cep.traces.ragged import RaggedColumns
from uncertain_cep.traces.readers import READERS
from uncertain_cep.traces.table_formats import FILE_FORMATS
from uncertain_cep.traces.text_lines import CONTINUATION

__all__ = ["COLUMN_TYPES", "ColumnType", "FileOptions"]

ColumnType = Literal["string", "int", "float", "bool", "timestamp"]
COLUMN_TYPES: Final[tuple[ColumnType, ...]] = get_args(ColumnType)


@dataclass(frozen=True, slots=True)
class FileOptions:
    """How the text of files is read."""

    types: tuple[tuple[str, ColumnType], ...] = ()
    """Columns whose type is given instead of found out."""
    nulls: tuple[str, ...] = ()
    """Texts of a CSV file that stand for null besides the empty one."""
    delimiter: str | None = None
    """Of CSV files. Default: a comma, for ``.tsv`` a tab."""
    extract: tuple[Extraction, ...] = ()
    """Columns and the regular expressions whose named groups are cut out of them as further columns."""
    format: str | None = None
    """One of ``FILE_FORMATS`` or ``READERS``, whatever the files are called. None: as each file says."""
    columns: tuple[str, ...] = ()
    """The names of the columns of CSV files that have no line of names."""
    columns_by: RaggedColumns | None = None
    """Of such files: further columns by the value of one."""
    explode: tuple[str, ...] = ()
    """Columns of lists, or their paths: their items become rows."""
    file_column: str | None = None
    """A column for the name of the file that a row stands in."""
    folder_column: str | None = None
    """A column for the name of its folder."""
    continuation: str | None = CONTINUATION
    """What is found in lines of text that go on with the line before."""
    templates: Templates | None = None
    """Templates of the texts of a column, which are columns, too."""
    record_begin: str | None = None
    """What is found in the first line of each record of text; all other lines go on with the one before."""
    parts: bool = False
    """Whether records of text are written in parts, see `record_blocks`."""
    deduplicate: bool = False
    """Whether events that agree in everything count once."""
    texts: tuple[str, ...] = ()
    """Columns of stamps that are read as the text that stands there, if it is one."""
    joined: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Columns of stamps that are put together of others, such as a day and a time of day."""
    as_text: tuple[str, ...] = ()
    """Columns of numbers that are read as text, as other files hold numbers that no type of numbers holds."""
    encoding: str | None = None
    """Of text, as Python names it. Default: UTF-8, or UTF-16 where the first letter says so."""
    skip_rows: int = 0
    """How many lines stand before the line of names, or the first row, of CSV files."""

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FILE_FORMATS and self.format not in READERS:
            formats = ", ".join((*FILE_FORMATS, *READERS))
            raise OptionError(f"format={self.format!r} is unknown: use one of {formats}, or a plug-in")
