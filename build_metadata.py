"""The description that the package's page shows, and the addresses of the project, for the build.

The links of the README lead to files beside it, which a package's page does not have. With the address of the
repository in ``UNCERTAIN_CEP_URL`` they lead to the release there, without it they are text that names files.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

__all__ = ["MetadataHook", "description", "project_urls"]

ADDRESS: Final = "UNCERTAIN_CEP_URL"

_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def project_urls(address: str, version: str) -> dict[str, str]:
    """Return the addresses of a release by what is there, given that of the repository."""
    return {
        "Homepage": address,
        "Documentation": f"{address}/blob/v{version}/docs/tutorial.md",
        "Changelog": f"{address}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def description(root: Path, version: str, address: str | None) -> str:
    """Return the README without a link that leads to a file beside it."""

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if "://" in target:
            return found[0]
        if address is not None:
            kind = "tree" if (root / target).is_dir() else "blob"
            return f"[{text}]({address}/{kind}/v{version}/{target}{anchor})"
        return f"`{target}`" if text == target else f"{text} (`{target}`)"

    return _LINK.sub(link, (root / "README.md").read_text(encoding="utf-8"))


class MetadataHook(MetadataHookInterface):
    """Fills in the description and the addresses; what a source distribution has of them stays."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add to the metadata of ``pyproject.toml``, or of a source distribution."""
        address = os.environ.get(ADDRESS, "").rstrip("/") or None
        if address is not None and not re.fullmatch(r"https?://\S+", address):
            raise ValueError(
                f"{ADDRESS}={address}: it must be an address such as https://example.org/project"
            )
        if address is not None or "readme" not in metadata:
            text = description(Path(self.root), metadata["version"], address)
            metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if address is not None:
            metadata["urls"] = project_urls(address, metadata["version"])
