"""The loaders that ``bench.bulk_load`` compares; each writes a Parquet file to a table.

python bench/bulk_load_subjects.py NAME URL TABLE FILE
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

Load = Callable[[], None]
REGION, KEY, SECRET = "us-east-1", "bench", "bench"


def stator_load(url: str, table: str, file: str, condition: str | None = None) -> Load:
    import pyarrow.parquet  # noqa: F401

    from stator.bulk import BulkTarget, LoadOptions, load

    keys: Any = {"region": REGION, "access_key_id": KEY, "secret_access_key": SECRET}
    target = BulkTarget.open(url, table, options=keys)

    def run() -> None:
        with target:
            options = LoadOptions(journal=f"{file}.journal", condition=condition)
            assert load(file, target, options).ok

    return run


def stator_load_with_condition(url: str, table: str, file: str) -> Load:
    """Load rows that are new, each with a condition, as a guarded write of its own."""
    return stator_load(url, table, file, "attribute_not_exists(pk)")


def rows(file: str) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(file).iter_batches(batch_size=2_000):
        yield from batch.to_pylist()


def _session() -> Any:
    import boto3

    return boto3.Session(aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name=REGION)


def boto3_batch_writer(url: str, table: str, file: str) -> Load:
    import pyarrow.parquet  # noqa: F401

    made = _session().resource("dynamodb", endpoint_url=url).Table(table)

    def run() -> None:
        with made.batch_writer() as batch:
            for row in rows(file):
                batch.put_item(Item=row)

    return run


def awswrangler(url: str, table: str, file: str) -> Load:
    import awswrangler as wr
    import pyarrow.parquet as pq

    wr.config.dynamodb_endpoint_url = url
    session = _session()

    def run() -> None:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=20_000):
            wr.dynamodb.put_df(
                df=batch.to_pandas(), table_name=table, boto3_session=session, use_threads=True
            )

    return run


def pynamodb(url: str, table: str, file: str) -> Load:
    import pyarrow.parquet  # noqa: F401
    from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute
    from pynamodb.models import Model

    class Test(Model):
        class Meta:
            table_name = table
            host = url
            region = REGION
            aws_access_key_id = KEY
            aws_secret_access_key = SECRET

        pk = UnicodeAttribute(hash_key=True)
        router_id = UnicodeAttribute()
        isp = UnicodeAttribute()
        tested_at = UnicodeAttribute()
        latency_us = NumberAttribute()
        loss_ppm = NumberAttribute()
        passed = BooleanAttribute()
        firmware = UnicodeAttribute()
        trace = UnicodeAttribute()

    def run() -> None:
        with Test.batch_write() as batch:
            for row in rows(file):
                batch.save(Test(**row))

    return run


SUBJECTS: dict[str, Callable[[str, str, str], Load]] = {
    "stator load": stator_load,
    "stator load, --condition": stator_load_with_condition,
    "boto3 batch_writer": boto3_batch_writer,
    "awswrangler put_df": awswrangler,
    "PynamoDB batch_write": pynamodb,
}


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_mib() -> float:
    """The peak of this program alone; getrusage includes the process before exec."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main() -> None:
    name, url, table, file = sys.argv[1:]
    run = SUBJECTS[name](url, table, file)
    started, used = time.perf_counter(), _cpu_seconds()
    run()
    figures = {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": _cpu_seconds() - used,
        "peak_mib": peak_mib(),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
