"""Reads a table of Nyala with PySpark, joined with the keys of its series.

    spark-submit --jars kudu-spark3_2.12-1.17.1.jar read_measurement.py \
        master-1:7051,master-2:7051 nyala.db1.rp1.m1.cpu

Prints a line for each row: series key (measurement and tags), time, fields; separated by tabs.
"""

import re
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

masters, name = sys.argv[1:]
prefix, measurement = re.fullmatch(r"(.+)\.db\d+\.rp\d+\.m(\d+)\..*", name).groups()
spark = SparkSession.builder.appName("read a measurement").getOrCreate()


def table(name):
    return spark.read.format("kudu").options(**{"kudu.master": masters, "kudu.table": name}).load()


series = (
    table(prefix + ".series")
    .filter(col("measurement_id") == int(measurement))
    .select("series_id", "key")
)
rows = table(name).join(series, "series_id").orderBy("key", "time")
fields = sorted(set(rows.columns) - {"series_id", "time", "key"})
for row in rows.collect():
    values = [f"{field}={row[field]}" for field in fields if row[field] is not None]
    print("row", row["key"], row["time"], ",".join(values), sep="\t")
spark.stop()
