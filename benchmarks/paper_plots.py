"""The figures as pictures."""

from __future__ import annotations

from pathlib import Path

from benchmarks.paper_shapes import Series

__all__ = ["plot_bars", "plot_lines"]

_INCHES = (6.0, 4.0)
_DOTS_PER_INCH = 120
_MARKERS = "osD^v"


def plot_lines(path: Path, title: str, axis: str, series: Series) -> None:
    """Draw events a second over the horizontal axis, one line a method, and write a PNG file.

    Parameters
    ----------
    path : pathlib.Path
    title, axis : str
    series : mapping of str to mapping
        Method -> place on the axis -> events a second.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=_INCHES, layout="constrained")
    axes = figure.subplots()
    for (name, points), marker in zip(series.items(), _MARKERS, strict=False):
        axes.plot(list(points), list(points.values()), marker=marker, label=name)
    axes.set_yscale("log")
    axes.set_xlabel(axis)
    axes.set_ylabel("events a second")
    axes.set_title(title, fontsize="medium")
    axes.grid(visible=True, which="major", alpha=0.4)
    axes.legend()
    figure.savefig(path, dpi=_DOTS_PER_INCH)


def plot_bars(path: Path, title: str, series: Series) -> None:
    """Draw events a second of each method, in one group of bars a place, and write a PNG file.

    Parameters
    ----------
    path : pathlib.Path
    title : str
    series : mapping of str to mapping
        Method -> name of the group -> events a second.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=_INCHES, layout="constrained")
    axes = figure.subplots()
    groups = list(dict.fromkeys(group for points in series.values() for group in points))
    width = 0.8 / len(series)
    for place, (name, points) in enumerate(series.items()):
        offsets = [groups.index(group) + (place - (len(series) - 1) / 2) * width for group in points]
        axes.bar(offsets, list(points.values()), width, label=name)
    axes.set_xticks(range(len(groups)), [group.replace("_", "\n") for group in groups])
    axes.set_yscale("log")
    axes.set_ylabel("events a second")
    axes.set_title(title, fontsize="medium")
    axes.legend()
    figure.savefig(path, dpi=_DOTS_PER_INCH)
