"""Drives a server through Python's `influxdb` client: python influxdb_client.py HOST PORT"""
import sys
from datetime import datetime, timezone

from influxdb import InfluxDBClient
from influxdb.exceptions import InfluxDBClientError

host, port = sys.argv[1], int(sys.argv[2])
client = InfluxDBClient(host, port, database="py")
assert client.ping().startswith("1.8"), client.ping()

# Databases and policies.
client.create_database("py")
client.create_database("py")
assert {"name": "py"} in client.get_list_database()
client.create_retention_policy("short", "52w", 1, database="py", shard_duration="1d")
client.alter_retention_policy("short", database="py", duration="104w")
policies = {policy["name"]: policy for policy in client.get_list_retention_policies("py")}
assert policies["short"]["duration"] == "17472h0m0s", policies
assert policies["autogen"]["default"] is True, policies

# Points, in every form the client has.
when = datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
points = [
    {"measurement": "m", "tags": {"host": "a b", "who": "x=y,z"}, "time": when,
     "fields": {"f": 0.1, "i": 9223372036854775807, "b": True, "s": 'q"\\ é'}},
    {"measurement": "m", "tags": {"host": "c"}, "time": "2020-01-02T03:04:06Z", "fields": {"f": -1e-300}},
]
assert client.write_points(points)
assert client.write_points(points, time_precision="ms", retention_policy="autogen")
assert client.write_points(["m,host=line f=7 1577934247000000000"], protocol="line")
rows = [{"measurement": "many", "time": i, "tags": {"n": str(i % 10)}, "fields": {"v": float(i)}}
        for i in range(10_000)]
assert client.write_points(rows, batch_size=3000, time_precision="s", tags={"common": "t"})

rows = list(client.query('SELECT * FROM m WHERE host = \'a b\'').get_points())
assert len(rows) == 2, rows
assert rows[1]["f"] == 0.1 and rows[1]["i"] == 9223372036854775807 and rows[1]["b"] is True
assert rows[1]["s"] == 'q"\\ é' and rows[1]["who"] == "x=y,z", rows
assert rows[1]["time"] == "2020-01-02T03:04:05.678901Z", rows
# Milliseconds were rounded to a row of its own.
assert rows[0]["time"] == "2020-01-02T03:04:05.678000Z", rows
assert list(client.query("SELECT f FROM m WHERE host = 'c'").get_points())[0]["f"] == -1e-300
by_tag = client.query("SELECT count(v) FROM many GROUP BY n")
assert len(by_tag) == 10 and all(next(p)["count"] == 1000 for _, p in by_tag.items())

# Chunked reading, epochs, bound parameters, several statements.
# The client cannot read MessagePack in parts, whatever the server.
as_json = InfluxDBClient(host, port, database="py", headers={"Accept": "application/json"})
chunked = as_json.query("SELECT v FROM many", chunked=True, chunk_size=1000, epoch="s")
points = [point for part in chunked for point in part.get_points()]
assert len(points) == 10_000 and points[-1] == {"time": 9999, "v": 9999.0}, points[-1]
bound = client.query("SELECT v FROM many WHERE v >= $low AND n = $n",
                     bind_params={"low": 9990, "n": "5"}, epoch="s")
assert list(bound.get_points()) == [{"time": 9995, "v": 9995.0}]
evil = client.query("SELECT v FROM many WHERE n = $n", bind_params={"n": "5' OR n = '6"})
assert len(evil) == 0
several = client.query("SELECT count(v) FROM many; SHOW MEASUREMENTS")
assert len(several) == 2
assert client.get_list_measurements() == [{"name": "m"}, {"name": "many"}]
assert sorted(client.get_list_series(measurement="m"))[-1] == "m,host=line"

# Continuous queries.
client.create_continuous_query("cq", 'SELECT mean("v") INTO "short"."means" FROM "many" GROUP BY time(1h)')
assert client.get_list_continuous_queries()[-1]["py"][0]["name"] == "cq"
client.drop_continuous_query("cq")

# Users and privileges.
client.create_user("ann", "secret")
client.create_user("root", "top", admin=True)
assert {"user": "root", "admin": True} in client.get_list_users()
client.grant_privilege("read", "py", "ann")
assert client.get_list_privileges("ann") == [{"database": "py", "privilege": "READ"}]
client.revoke_privilege("read", "py", "ann")
client.grant_admin_privileges("ann")
client.revoke_admin_privileges("ann")
client.set_user_password("ann", "other")
client.drop_user("ann")
client.drop_user("root")
assert client.get_list_users() == []

# Mistakes arrive as exceptions.
for mistake in [lambda: client.query("SELEC"), lambda: client.query("SELECT foo(v) FROM many"),
                lambda: client.write_points([{"measurement": "m", "fields": {"f": "text"}}]),
                lambda: client.write_points(["m v="], protocol="line", database="none")]:
    try:
        mistake()
    except InfluxDBClientError as error:
        assert error.content, error
    else:
        raise AssertionError("a mistake was not noticed")

# gzip both ways, then deletes.
packed = InfluxDBClient(host, port, database="py", gzip=True)
assert packed.write_points([{"measurement": "gz", "time": 1, "fields": {"v": 1}}])
assert len(list(packed.query("SELECT v FROM gz").get_points())) == 1
client.delete_series(measurement="m", tags={"host": "c"})
assert len(list(client.query("SELECT f FROM m WHERE host = 'c'").get_points())) == 0
client.drop_measurement("gz")
client.drop_retention_policy("short", database="py")
client.drop_database("py")
assert client.get_list_database() == [], client.get_list_database()
print("ok")
