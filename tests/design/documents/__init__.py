"""Tests of ``stator.design.documents``. ``tests.browser`` looks at the HTML page in a browser.

diagram: test_documents.py
document: test_documents.py
heat_page: ../../cli/test_simulate.py
html: test_documents.py
markdown: test_documents.py
markdown_parts: test_documents.py
style: ../../browser/test_design_page.py
svg: test_documents.py
"""
