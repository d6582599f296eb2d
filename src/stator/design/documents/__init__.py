"""A design as a document to read: patterns, an entity diagram, keys and example items, in Markdown and in HTML.

    page = html(document_of(shop))

``document_of`` collects what is to be said; ``markdown`` and ``html`` only say it. Nothing here reads or writes files.
"""

from __future__ import annotations

from stator.design.documents.document import Document, document_of
from stator.design.documents.html import html
from stator.design.documents.markdown import markdown

__all__ = ["Document", "document_of", "html", "markdown"]
