"""The view type of a stream: which images of an item its records carry.

KEYS_ONLY < NEW_IMAGE, OLD_IMAGE < NEW_AND_OLD_IMAGES
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

StreamView = Literal["NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY"]

_IMAGES: Final[dict[StreamView, frozenset[str]]] = {
    "KEYS_ONLY": frozenset(),
    "NEW_IMAGE": frozenset({"new"}),
    "OLD_IMAGE": frozenset({"old"}),
    "NEW_AND_OLD_IMAGES": frozenset({"new", "old"}),
}
STREAM_VIEWS: Final = tuple(_IMAGES)


def shows(view: str, needed: StreamView) -> bool:
    """Whether a stream with view type ``view`` carries every image that ``needed`` has."""
    return any(view == name and _IMAGES[needed] <= images for name, images in _IMAGES.items())


def smallest_view(needed: Iterable[StreamView]) -> StreamView:
    """Return the smallest view type that shows all of ``needed``."""
    images = frozenset[str]().union(*(_IMAGES[each] for each in needed))
    return next(name for name, shown in _IMAGES.items() if shown == images)
