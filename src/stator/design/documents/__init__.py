"""A design as a document for readers: patterns, entity diagram, keys and example items.

    page = html(document_of(shop))

``document_of`` collects the content. ``markdown`` and ``html`` render it, and choose no content of
their own. ``heat_page`` renders a simulation as a page of its own. ``diagram`` finds how entities
are related, ``svg`` draws that, ``style`` is the style sheet. Nothing here reads or writes files:
``stator docs`` and ``stator simulate`` do. Formats for other tools are in ``stator.design.export``.
"""

from __future__ import annotations

from stator.design.documents.document import Document, document_of
from stator.design.documents.heat_page import heat_page
from stator.design.documents.html import html
from stator.design.documents.markdown import markdown

__all__ = ["Document", "document_of", "heat_page", "html", "markdown"]
