"""Values marked ``large()``: compressed in the item, or offloaded to a blob store.

``blobs`` packs and unpacks, ``compression`` knows the methods, ``stores`` are folders and S3. The
audit that finds blobs no item names is ``stator.patterns.blob_audit``.
"""
