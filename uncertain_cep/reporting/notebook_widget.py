"""A page as a widget of a notebook; it needs the extra ``notebook``, which is anywidget."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Final

import anywidget
import traitlets

__all__ = ["PageWidget"]


class PageWidget(anywidget.AnyWidget):  # type: ignore[misc]
    """The page of a report in a notebook, in the notebook's colours.

    Attributes
    ----------
    match : dict, optional
        The match that is open, by partition attributes and variables, as the page has these. Another one
        opens when it is set.
    height : int
        Of the frame, in pixels.
    html, title : str
        The page, and what it is called for readers of the screen.
    """

    _esm: Final = files("uncertain_cep.reporting").joinpath("widget.js").read_text(encoding="utf-8")

    html = traitlets.Unicode().tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int().tag(sync=True)
    match = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)

    def __init__(self, html: str, title: str, height: int, alone: str) -> None:
        super().__init__(html=html, title=title, height=height)
        self._alone = alone

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the widget, and the page alone for readers that have no kernel and no widgets."""
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        kinds, metadata = bundle
        return {**kinds, "text/html": self._alone}, metadata
