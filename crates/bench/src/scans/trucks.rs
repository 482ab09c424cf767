//! Questions over the readings and diagnostics of trucks: 100 of them, three days. Fields are floats with few digits, some
//! are missing, and so are tags, so that a truck has several series. The first ones are TSBS' questions of a fleet.

use super::{Question, trucks, trucks_number};

pub(super) const QUESTIONS: [Question; 25] = [
    trucks(
        "latest place of each truck of a fleet",
        "SELECT latitude, longitude FROM readings WHERE fleet = 'South' AND {time} GROUP BY \"name\", driver ORDER BY time \
         DESC LIMIT 1",
        Some(
            "SELECT name, driver, latitude, longitude FROM readings WHERE fleet = 'South' LATEST ON timestamp PARTITION BY \
             name, driver",
        ),
    ),
    trucks(
        "latest low fuel of each truck of a fleet",
        "SELECT driver, fuel_state FROM \"diagnostics\" WHERE fuel_state <= 0.1 AND fleet = 'South' AND {time} GROUP BY \
         \"name\" ORDER BY time DESC LIMIT 1",
        Some(
            "SELECT name, driver, fuel_state FROM diagnostics WHERE fleet = 'South' AND fuel_state <= 0.1 LATEST ON \
             timestamp PARTITION BY name",
        ),
    ),
    trucks(
        "trucks of a fleet with a high load",
        "SELECT driver, current_load, load_capacity FROM (SELECT current_load, load_capacity FROM \"diagnostics\" WHERE \
         fleet = 'South' AND {time} GROUP BY \"name\", driver ORDER BY time DESC LIMIT 1) WHERE current_load >= 0.9 * \
         load_capacity GROUP BY \"name\" ORDER BY time DESC",
        Some(
            "SELECT * FROM (SELECT name, driver, current_load, load_capacity FROM diagnostics WHERE fleet = 'South' LATEST \
             ON timestamp PARTITION BY name, driver) WHERE current_load >= 0.9 * load_capacity",
        ),
    ),
    trucks(
        "slow trucks of a fleet, ten minutes",
        "SELECT driver FROM (SELECT mean(velocity) AS v FROM readings WHERE time >= '2016-01-02T08:00:00Z' AND time < \
         '2016-01-02T08:10:00Z' GROUP BY time(10m), \"name\", driver, fleet LIMIT 1) WHERE fleet = 'South' AND v < 50 GROUP \
         BY \"name\"",
        Some(
            "SELECT name, driver FROM (SELECT name, driver, avg(velocity) v FROM readings WHERE fleet = 'South' AND timestamp \
             >= '2016-01-02T08:00:00Z' AND timestamp < '2016-01-02T08:10:00Z' GROUP BY name, driver) WHERE v < 50",
        ),
    ),
    trucks(
        "long drives, four hours",
        "SELECT driver FROM (SELECT count(v) AS n FROM (SELECT mean(velocity) AS v FROM readings WHERE fleet = 'South' AND \
         time >= '2016-01-02T08:00:00Z' AND time < '2016-01-02T12:00:00Z' GROUP BY time(10m), \"name\", driver) WHERE v > 50 \
         GROUP BY \"name\", driver) WHERE n > 11 GROUP BY \"name\"",
        Some(
            "SELECT name, driver FROM (SELECT name, driver, count() n FROM (SELECT timestamp, name, driver, avg(velocity) v \
             FROM readings WHERE fleet = 'South' AND timestamp >= '2016-01-02T08:00:00Z' AND timestamp < \
             '2016-01-02T12:00:00Z' SAMPLE BY 10m) WHERE v > 50 GROUP BY name, driver) WHERE n > 11",
        ),
    ),
    trucks(
        "long drives, a day",
        "SELECT driver FROM (SELECT count(v) AS n FROM (SELECT mean(velocity) AS v FROM readings WHERE fleet = 'South' AND \
         time >= '2016-01-02T00:00:00Z' AND time < '2016-01-03T00:00:00Z' GROUP BY time(10m), \"name\", driver) WHERE v > 50 \
         GROUP BY \"name\", driver) WHERE n > 60 GROUP BY \"name\"",
        Some(
            "SELECT name, driver FROM (SELECT name, driver, count() n FROM (SELECT timestamp, name, driver, avg(velocity) v \
             FROM readings WHERE fleet = 'South' AND timestamp >= '2016-01-02T00:00:00Z' AND timestamp < \
             '2016-01-03T00:00:00Z' SAMPLE BY 10m) WHERE v > 50 GROUP BY name, driver) WHERE n > 60",
        ),
    ),
    trucks(
        "consumption and what is projected, by fleet",
        "SELECT mean(fuel_consumption), mean(nominal_fuel_consumption) FROM readings WHERE velocity > 1 AND {time} GROUP BY \
         fleet",
        Some(
            "SELECT fleet, avg(fuel_consumption), avg(nominal_fuel_consumption) FROM readings WHERE velocity > 1 GROUP BY \
             fleet",
        ),
    ),
    trucks(
        "hours driven each day, by truck",
        "SELECT count(v) / 6 FROM (SELECT mean(velocity) AS v FROM readings WHERE {time} GROUP BY time(10m), fleet, \"name\", \
         driver) WHERE {time} GROUP BY time(1d), fleet, \"name\", driver",
        Some(
            "SELECT fleet, name, driver, timestamp_floor('d', timestamp) d, count() / 6.0 FROM (SELECT timestamp, fleet, name, \
             driver, avg(velocity) v FROM readings SAMPLE BY 10m) GROUP BY fleet, name, driver, d",
        ),
    ),
    trucks(
        "how long drives are, by truck",
        "SELECT elapsed FROM (SELECT difference(edge), elapsed(edge, 1m) FROM (SELECT edge FROM (SELECT difference(v) AS edge \
         FROM (SELECT floor(mean(velocity) / 50) / floor(mean(velocity) / 50) AS v FROM readings WHERE {time} GROUP BY \
         time(10m), \"name\" fill(0)) GROUP BY \"name\") WHERE edge != 0 GROUP BY \"name\") GROUP BY \"name\") WHERE \
         difference = -2 GROUP BY \"name\"",
        None,
    ),
    trucks(
        "load and capacity, by fleet and model",
        "SELECT mean(share) FROM (SELECT current_load / load_capacity AS share FROM \"diagnostics\" WHERE {time} GROUP BY \
         \"name\", fleet, model) GROUP BY fleet, model",
        Some(
            "SELECT fleet, model, avg(current_load / load_capacity) FROM diagnostics GROUP BY fleet, model",
        ),
    ),
    trucks(
        "activity each day, by fleet and model",
        "SELECT count(s) / 144 FROM (SELECT mean(status) AS s FROM \"diagnostics\" WHERE {time} GROUP BY time(10m), model, \
         fleet) WHERE s < 3 AND {time} GROUP BY time(1d), model, fleet",
        Some(
            "SELECT fleet, model, timestamp_floor('d', timestamp) d, count() / 144.0 FROM (SELECT timestamp, fleet, model, \
             avg(status) s FROM diagnostics SAMPLE BY 10m) WHERE s < 3 GROUP BY fleet, model, d",
        ),
    ),
    trucks(
        "how often a model breaks down",
        "SELECT count(change) FROM (SELECT difference(broken) AS change FROM (SELECT floor(1.2 * sum(s) / count(s)) AS broken \
         FROM (SELECT status / status AS s FROM \"diagnostics\" WHERE {time}) WHERE {time} GROUP BY time(10m), model) GROUP BY \
         model) WHERE change = 1 GROUP BY model",
        Some(
            "SELECT model, count() FROM (SELECT model, broken, lag(broken) OVER (PARTITION BY model ORDER BY timestamp) before \
             FROM (SELECT timestamp, model, floor(1.2 * avg(CASE WHEN status > 0 THEN 1.0 ELSE 0.0 END)) broken FROM \
             diagnostics SAMPLE BY 10m)) WHERE broken = 1 AND before = 0 GROUP BY model",
        ),
    ),
    trucks_number(
        "rows above 90",
        "SELECT count(velocity) FROM readings WHERE velocity > 90 AND {time}",
        Some("SELECT count(velocity) FROM readings WHERE velocity > 90"),
    ),
    trucks_number(
        "rows where one field is above another",
        "SELECT count(velocity) FROM readings WHERE velocity > fuel_consumption AND {time}",
        Some("SELECT count(velocity) FROM readings WHERE velocity > fuel_consumption"),
    ),
    trucks_number(
        "rows within a rectangle",
        "SELECT count(latitude) FROM readings WHERE latitude > 10 AND latitude < 40 AND longitude > 0 AND longitude < 90 AND \
         {time}",
        Some(
            "SELECT count(latitude) FROM readings WHERE latitude > 10 AND latitude < 40 AND longitude > 0 AND longitude < 90",
        ),
    ),
    trucks(
        "rows above 99, two fields",
        "SELECT velocity, latitude FROM readings WHERE velocity > 99 AND {time}",
        Some("SELECT timestamp, velocity, latitude FROM readings WHERE velocity > 99"),
    ),
    trucks(
        "four means by truck, another field above 20",
        "SELECT mean(velocity), mean(fuel_consumption), mean(heading), mean(grade) FROM readings WHERE elevation > 20 AND \
         {time} GROUP BY \"name\"",
        Some(
            "SELECT name, avg(velocity), avg(fuel_consumption), avg(heading), avg(grade) FROM readings WHERE elevation > 20",
        ),
    ),
    trucks(
        "mean by minute",
        "SELECT mean(velocity) FROM readings WHERE {time} GROUP BY time(1m)",
        Some("SELECT timestamp, avg(velocity) FROM readings SAMPLE BY 1m"),
    ),
    trucks(
        "mean by 10 minutes and truck",
        "SELECT mean(velocity) FROM readings WHERE {time} GROUP BY time(10m), \"name\"",
        Some("SELECT timestamp, name, avg(velocity) FROM readings SAMPLE BY 10m"),
    ),
    trucks_number(
        "standard deviation",
        "SELECT stddev(longitude) FROM readings WHERE {time}",
        Some("SELECT stddev_samp(longitude) FROM readings"),
    ),
    trucks(
        "ten greatest values",
        "SELECT top(elevation, 10) FROM readings WHERE {time}",
        Some("SELECT timestamp, elevation FROM readings ORDER BY elevation DESC LIMIT 10"),
    ),
    trucks(
        "values that differ",
        "SELECT distinct(heading) FROM readings WHERE {time}",
        Some("SELECT DISTINCT heading FROM readings"),
    ),
    trucks_number(
        "sum of what two fields make",
        "SELECT sum(x) FROM (SELECT velocity + fuel_consumption * 2 AS x FROM readings WHERE {time})",
        Some("SELECT sum(velocity + fuel_consumption * 2) FROM readings"),
    ),
    trucks(
        "latest row of each truck",
        "SELECT * FROM readings WHERE {time} GROUP BY \"name\" ORDER BY time DESC LIMIT 1",
        Some("SELECT * FROM readings LATEST ON timestamp PARTITION BY name"),
    ),
    trucks(
        "latest ten rows",
        "SELECT * FROM readings WHERE {time} ORDER BY time DESC LIMIT 10",
        Some("SELECT * FROM readings ORDER BY timestamp DESC LIMIT 10"),
    ),
];
