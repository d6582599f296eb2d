"""Values marked ``large()``: compressed in the item, or offloaded to a blob store.

``blobs`` packs and unpacks values, ``compression`` has the methods, ``stores`` has folders and S3.
The audit that finds blobs without an item is ``stator.patterns.blob_audit``.
"""
