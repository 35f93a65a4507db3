"""Reads back what a chart draws."""

from __future__ import annotations

from typing import Any

__all__ = ["values"]


def values(chart: Any) -> list[list[dict[str, Any]]]:
    """Return all data of a chart, layer by layer; this also has Altair check it."""
    layers = []

    def walk(part: dict[str, Any]) -> None:
        if isinstance(part.get("data"), dict):
            layers.append(part["data"]["values"])
        for inner in (*part.get("vconcat", ()), *part.get("layer", ())):
            walk(inner)

    walk(chart.to_dict())
    return layers
