"""Writes the Parquet files of the cases and the rows that they hold, by pyarrow (>= 15).

    python make_parquet.py

Each case is a folder with `rows.parquet` and `rows.jsonl`.
"""

import base64
import datetime
import decimal
import json
import math
import pathlib
import random
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent


def plain(value):
    """A value as the rows of the crate have it."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(pair, tuple) for pair in value):
            if all(isinstance(key, str) for key, _ in value):
                return {key: plain(inner) for key, inner in value}
            return [{"key": plain(key), "value": plain(inner)} for key, inner in value]
        return [plain(inner) for inner in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        text = value.replace(tzinfo=None).isoformat()
        if "." in text:
            text = text.rstrip("0")
        return text + ("Z" if value.tzinfo else "")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    return value


def write(name, table, **options):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / "rows.parquet", **options)
    rows = [plain(row) for row in table.to_pylist()]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "rows.jsonl").write_text(text, encoding="utf-8")


def messages():
    """Rows as verl's trainer reads them; many, in small pages and several row groups."""
    rng = random.Random(0)
    rows = []
    for index in range(150):
        turns = rng.randrange(4)
        rows.append(
            {
                "prompt": [
                    {"role": rng.choice(["system", "user"]), "content": "wörd " * rng.randrange(9)}
                    for _ in range(turns)
                ],
                "data_source": "made",
                "reward_model": {"style": "rule", "ground_truth": [str(index)] * rng.randrange(3)},
                "extra_info": {
                    "index": index,
                    "turn_roles": ["history"] * turns or None,
                    "turn_metadata": [
                        {"chunk_idx": turn, "seen": [[turn], [], None] if turn else None}
                        for turn in range(turns)
                    ],
                }
                if index % 7
                else None,
            }
        )
    return pa.Table.from_pylist(rows)


def types():
    utc = datetime.timezone.utc
    moment = datetime.datetime(2023, 5, 8, 13, 56, 1, 250000)
    columns = {
        "bool": pa.array([True, False, None]),
        "int8": pa.array([-128, 127, None], pa.int8()),
        "uint32": pa.array([0, 2**32 - 1, None], pa.uint32()),
        "uint64": pa.array([0, 2**64 - 1, None], pa.uint64()),
        "int64": pa.array([-(2**63), 2**63 - 1, None]),
        "half": pa.array([0.5, -2.0, None], pa.float16()),
        "float": pa.array([0.5, float("nan"), None], pa.float32()),
        "double": pa.array([0.1, float("-inf"), None]),
        "decimal": pa.array([decimal.Decimal("-0.05"), decimal.Decimal("123.40"), None], pa.decimal128(9, 2)),
        "wide_decimal": pa.array([decimal.Decimal(10) ** 25, decimal.Decimal(-1), None], pa.decimal128(30, 4)),
        "date": pa.array([datetime.date(1969, 12, 31), datetime.date(2024, 2, 29), None]),
        "time": pa.array([datetime.time(0, 0, 1), datetime.time(23, 59, 59), None]),
        "moment": pa.array([moment, moment.replace(microsecond=0), None], pa.timestamp("us")),
        "moment_utc": pa.array([moment.replace(tzinfo=utc)] * 2 + [None], pa.timestamp("ms", "UTC")),
        "large_text": pa.array(["日本語", "", None], pa.large_string()),
        "word": pa.array(["a", "b", None]).dictionary_encode(),
        "bytes": pa.array([b"\xff\x00", b"text", None]),
        "uuid": pa.array([uuid.UUID(int=7).bytes, uuid.UUID(int=2**127).bytes, None], pa.uuid()),
        "nothing": pa.array([None, None, None], pa.null()),
        "map": pa.array([[("b", 1), ("a", None)], [("b", 2)], None], pa.map_(pa.string(), pa.int64())),
        "number_map": pa.array([[(1, ["x"])], [(2, None)], None], pa.map_(pa.int64(), pa.list_(pa.string()))),
        "lists": pa.array([[[], [None], [1, 2]], [], None], pa.list_(pa.list_(pa.int64()))),
        "structs": pa.array(
            [[{"a": None, "b": {"c": [True]}}, None], [{"a": "x", "b": None}], None],
            pa.list_(pa.struct([("a", pa.string()), ("b", pa.struct([("c", pa.list_(pa.bool_()))]))])),
        ),
        "fixed": pa.array([[1, 2], [3, None], None], pa.list_(pa.int64(), 2)),
    }
    return pa.table(columns)


def packed():
    """Columns that hold JSON text, as later QA rows and Mem-alpha rows have them."""
    rows = [
        {
            "chunks": json.dumps([f"chunk {index} of row {row}" for index in range(row)]),
            "questions_and_answers": json.dumps([{"question": "Wer?", "answer": ["Zoë", row]}]),
            "metadata": json.dumps({"metadata": json.dumps({"deep": row})}),
            "plain": "[not JSON",
        }
        for row in range(4)
    ]
    return pa.Table.from_pylist(rows)


def required():
    """Columns without nulls, and a file without rows behind the first group."""
    schema = pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            pa.field("tags", pa.list_(pa.field("item", pa.string(), nullable=False)), nullable=False),
        ]
    )
    rows = [{"id": index, "tags": ["t"] * (index % 3)} for index in range(70)]
    return pa.Table.from_pylist(rows, schema)


if __name__ == "__main__":
    random.seed(0)
    write(
        "001_messages",
        messages(),
        compression="snappy",
        row_group_size=64,
        data_page_size=128,
        write_batch_size=8,
    )
    write("002_types", types(), compression="zstd")
    write("003_packed", packed(), compression="gzip", use_dictionary=False, data_page_version="2.0")
    write(
        "004_old_writer",
        types().select(["moment", "lists", "structs", "word", "date", "uint32"]),
        compression="none",
        version="1.0",
        use_deprecated_int96_timestamps=True,
        use_compliant_nested_type=False,
        store_schema=False,
    )
    write(
        "005_required",
        required(),
        compression="snappy",
        use_dictionary=False,
        column_encoding={"id": "DELTA_BINARY_PACKED", "tags.list.element": "DELTA_BYTE_ARRAY"},
    )
