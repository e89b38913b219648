"""Makes the Parquet files beside it, or those in the folder given: pyarrow 26, zstd and LZ4_RAW."""

import os
import sys

import pyarrow as pa
import pyarrow.parquet as parquet

turn = pa.struct([("from", pa.string()), ("value", pa.string())])
rows = [
    [{"from": "human", "value": f'q{i} "\u00e9\n'}, {"from": "gpt", "value": f"a{i}"}]
    for i in range(60)
]
rows[10], rows[20], rows[30] = None, [], [None, {"from": "human", "value": None}]
table = pa.table({"conversations": pa.array(rows, pa.list_(turn)), "source": ["metamath"] * 60})
folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
for codec in "zstd", "lz4":
    for version in "1.0", "2.0":
        parquet.write_table(
            table,
            os.path.join(folder, f"{codec}-v{version[0]}.parquet"),
            compression=codec,
            data_page_version=version,
            row_group_size=40,
            data_page_size=256,
        )
