"""Reads and writes the benchmark's rows by Python's json and by pyarrow; prints seconds by what was done.

    python rows.py FOLDER        (rows.jsonl, rows.json and rows.parquet are there)
"""

import json
import pathlib
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq

folder = pathlib.Path(sys.argv[1])
seconds = {}


def timed(name, work):
    started = time.perf_counter()
    result = work()
    seconds[name] = time.perf_counter() - started
    return result


def lines():
    with open(folder / "rows.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def whole():
    with open(folder / "rows.json", encoding="utf-8") as file:
        return json.load(file)


rows = timed("read JSON Lines", lines)
timed("read a JSON list", whole)
timed("read Parquet", lambda: pq.read_table(folder / "rows.parquet", use_threads=False).to_pylist())
timed(
    "write Parquet",
    lambda: pq.write_table(pa.Table.from_pylist(rows), folder / "peer.parquet", compression="zstd", compression_level=3),
)
print(json.dumps(seconds))
