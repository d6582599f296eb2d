"""File formats: one reader and one writer for each, with no knowledge of tables.

The formats are DynamoDB JSON, Amazon Ion, CSV, Parquet, Arrow and exact JSON, with gzip and zstd
compression. Every module takes bytes or file objects and returns rows, items or bytes. The engine's
exports and imports, bulk jobs, sinks and commands all read and write through this package. So a
truncated or damaged file is found in the same way everywhere.

Two things live elsewhere. Files are found and opened by ``engine.recovery.objects`` and
``stator.buckets`` (buckets) and by ``pipeline.bulk`` (bulk inputs and outputs). What happens to a
bad row is up to the caller. An import stops reading an object at a line without an item, as on AWS.
A bulk load writes a dead letter.

The modules:

    compression     gzip and zstd, with truncated and damaged data reported
    dynamodb_json   items and changes in DynamoDB JSON, one to a line
    ion             items and changes in Amazon Ion
    csv_rows        rows of CSV
    arrow           Parquet and Arrow files as record batches, starting at any row
    arrow_items     record batches as items, without a Python object for each value
    parquet         items as Parquet
    plain           items as plain Python values, and plain values as items
    exact_json      JSON read without losing digits
    extras          optional libraries, and which extra installs each
"""
