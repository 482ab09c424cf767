mod property;
mod reader;

use std::num::NonZeroUsize;
use std::sync::Arc;

use model::{Bitmap, Column, ColumnBatch, Name, SeriesHeader, Strings, Values};
use serde_json::{Value, json};

use super::*;
use crate::{Epoch, Format};

const HOUR: i64 = 3_600_000_000_000;

fn header(name: &str, tags: &[(&str, &str)], columns: &[&str]) -> Arc<SeriesHeader> {
    Arc::new(SeriesHeader {
        name: name.into(),
        tags: tags.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        columns: columns.iter().map(|c| (*c).into()).collect(),
        list: None,
    })
}

/// Hourly rows `from..to` of a series with a time and an integer that counts the rows.
fn part(header: &Arc<SeriesHeader>, from: i64, to: i64, continues: bool) -> ResultBatch {
    let columns = vec![
        Column::new(Values::Time((from..to).map(|n| n * HOUR).collect())),
        Column::new(Values::Integer((from..to).collect())),
    ];
    let batch = ColumnBatch { rows: (to - from) as usize, runs: Vec::new(), columns };
    ResultBatch { continues, ..ResultBatch::whole(header.clone(), batch) }
}

fn table(header: &Arc<SeriesHeader>, columns: Vec<Column>) -> ResultBatch {
    let batch = ColumnBatch { rows: columns[0].len(), runs: Vec::new(), columns };
    ResultBatch::whole(header.clone(), batch)
}

fn encoded(options: Options, work: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let mut encoder = Encoder::new(options);
    work(&mut encoder);
    encoder.end();
    encoder.take()
}

fn text(options: Options, work: impl FnOnce(&mut Encoder)) -> String {
    String::from_utf8(encoded(options, work)).unwrap()
}

fn compact() -> Options {
    Options::default()
}

fn csv() -> Options {
    Options { format: Format::Csv, ..Options::default() }
}

fn chunked(rows: usize) -> Options {
    Options { chunk_rows: NonZeroUsize::new(rows), ..Options::default() }
}

fn limited(rows: usize) -> Options {
    Options { max_rows: NonZeroUsize::new(rows), ..Options::default() }
}

/// One statement with two series of two columns, the first in two parts.
fn two_series(encoder: &mut Encoder) {
    let a = header("cpu", &[("host", "a"), ("z", "")], &["time", "v"]);
    let b = header("cpu", &[("host", "b<"), ("z", "1")], &["time", "v"]);
    encoder.begin_statement(0, None);
    encoder.batch(&part(&a, 0, 2, true));
    encoder.batch(&part(&a, 2, 3, false));
    encoder.batch(&part(&b, 0, 1, false));
    encoder.end_statement();
}

#[test]
fn chunks_of_whole_series_and_of_whole_statements() {
    let answer = |documents: Documents| {
        text(chunked(1), |encoder| {
            let a = header("a", &[], &["v"]);
            let b = header("b", &[], &["v"]);
            let rows = |header: &Arc<SeriesHeader>, value: i64, continues: bool| {
                let columns = vec![Column::new(Values::Integer(vec![value]))];
                let batch = ColumnBatch { rows: 1, runs: Vec::new(), columns };
                ResultBatch { continues, ..ResultBatch::whole(header.clone(), batch) }
            };
            encoder.begin_statement_in(0, None, documents);
            encoder.batch(&rows(&a, 1, true));
            encoder.batch(&rows(&a, 2, false));
            encoder.batch(&rows(&b, 3, false));
            encoder.end_statement();
            encoder.begin_statement_in(1, None, documents);
            encoder.end_statement();
            encoder.begin_statement_in(2, None, documents);
            encoder.fail_statement("no", 1);
        })
    };
    let a = r#"{"name":"a","columns":["v"],"values":[[1],[2]]}"#;
    let b = r#"{"name":"b","columns":["v"],"values":[[3]]}"#;
    let rest = concat!(
        r#"{"results":[{"statement_id":1}]}"#,
        "\n",
        r#"{"results":[{"statement_id":2,"error":"no"}]}"#,
        "\n",
        r#"{"results":[{"statement_id":2,"error":"not executed"}]}"#,
        "\n"
    );
    let document =
        |series: &str| format!("{{\"results\":[{{\"statement_id\":0,\"series\":[{series}]}}]}}\n");
    assert_eq!(answer(Documents::Series), document(a) + &document(b) + rest);
    assert_eq!(answer(Documents::Statement), document(&format!("{a},{b}")) + rest);
}

#[test]
fn json_in_one_document() {
    assert_eq!(text(compact(), |_| {}), "{}\n");
    let empty = |e: &mut Encoder| {
        e.begin_statement(0, None);
        e.end_statement();
        e.begin_statement(1, None);
        e.batch(&part(&header("databases", &[], &["name"]), 0, 0, false));
        e.message("warning", "do not");
        e.end_statement();
    };
    assert_eq!(
        text(compact(), empty),
        concat!(
            r#"{"results":[{"statement_id":0},{"statement_id":1,"series":[{"name":"databases","#,
            r#""columns":["name"]}],"messages":[{"level":"warning","text":"do not"}]}]}"#,
            "\n"
        )
    );
    assert_eq!(
        text(compact(), two_series),
        concat!(
            r#"{"results":[{"statement_id":0,"series":[{"name":"cpu","tags":{"host":"a","z":""},"#,
            r#""columns":["time","v"],"values":[["1970-01-01T00:00:00Z",0],"#,
            r#"["1970-01-01T01:00:00Z",1],["1970-01-01T02:00:00Z",2]]},{"name":"cpu","#,
            r#""tags":{"host":"b\u003c","z":"1"},"columns":["time","v"],"#,
            r#""values":[["1970-01-01T00:00:00Z",0]]}]}]}"#,
            "\n"
        )
    );
}

#[test]
fn json_with_indentation() {
    let options = Options { format: Format::Json { pretty: true }, ..Options::default() };
    assert_eq!(text(options, |_| {}), "{}\n");
    let work = |e: &mut Encoder| {
        let tagged = header("cpu", &[("host", "a")], &["time", "v"]);
        e.begin_statement(0, None);
        e.batch(&part(&tagged, 0, 2, false));
        e.message("warning", "m");
        e.end_statement();
        e.begin_statement(1, None);
        e.fail_statement("failed", 0);
    };
    let want = r#"{
    "results": [
        {
            "statement_id": 0,
            "series": [
                {
                    "name": "cpu",
                    "tags": {
                        "host": "a"
                    },
                    "columns": [
                        "time",
                        "v"
                    ],
                    "values": [
                        [
                            "1970-01-01T00:00:00Z",
                            0
                        ],
                        [
                            "1970-01-01T01:00:00Z",
                            1
                        ]
                    ]
                }
            ],
            "messages": [
                {
                    "level": "warning",
                    "text": "m"
                }
            ]
        },
        {
            "statement_id": 1,
            "error": "failed"
        }
    ]
}
"#;
    assert_eq!(text(options, work), want);
    let error = Format::Json { pretty: true }.error("a \"b\"");
    assert_eq!(String::from_utf8(error).unwrap(), "{\n    \"error\": \"a \\\"b\\\"\"\n}\n");
}

#[test]
fn json_in_chunks_says_what_follows() {
    let documents = |options| -> Vec<Value> {
        text(options, two_series).lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    };
    let got = documents(chunked(2));
    let flags: Vec<_> = got
        .iter()
        .map(|document| {
            let result = &document["results"][0];
            let series = &result["series"][0];
            let rows = series["values"].as_array().unwrap().len();
            (rows, series["partial"] == true, result["partial"] == true)
        })
        .collect();
    assert_eq!(flags, [(2, true, true), (1, false, true), (1, false, false)]);
    // Parts are joined up to the length of a chunk.
    assert_eq!(documents(chunked(3)).len(), 2);
    assert_eq!(documents(chunked(1)).len(), 4);
    assert_eq!(
        text(chunked(5), |e| {
            e.begin_statement(3, None);
            e.message("warning", "w");
            e.end_statement();
        }),
        "{\"results\":[{\"statement_id\":3,\"messages\":[{\"level\":\"warning\",\"text\":\"w\"}]}]}\n"
    );
    assert_eq!(text(chunked(5), |_| {}), "");
}

#[test]
fn failures_leave_what_influxdb_leaves() {
    let fail = |after_rows: bool, not_executed: u32| {
        move |e: &mut Encoder| {
            e.begin_statement(0, None);
            e.end_statement();
            e.begin_statement(1, None);
            if after_rows {
                e.batch(&part(&header("m", &[], &["time", "v"]), 0, 2, true));
            }
            e.fail_statement("bad & worse", not_executed);
        }
    };
    for after_rows in [false, true] {
        let result = |error: &str| {
            format!(
                "{{\"results\":[{{\"statement_id\":0}},{{\"statement_id\":1,\"error\":\"{error}\"}}"
            )
        };
        assert_eq!(
            text(compact(), fail(after_rows, 0)),
            format!("{}]}}\n", result("bad \\u0026 worse"))
        );
        assert_eq!(
            text(compact(), fail(after_rows, 1)),
            format!("{}]}}\n", result("not executed"))
        );
        assert_eq!(
            text(compact(), fail(after_rows, 2)),
            format!("{}]}}\n", result("not executed"))
        );
        assert_eq!(text(csv(), fail(after_rows, 2)), "");
    }
    assert_eq!(
        text(chunked(9), fail(false, 2)),
        concat!(
            "{\"results\":[{\"statement_id\":0}]}\n",
            "{\"results\":[{\"statement_id\":1,\"error\":\"bad \\u0026 worse\"}]}\n",
            "{\"results\":[{\"statement_id\":1,\"error\":\"not executed\"}]}\n",
            "{\"results\":[{\"statement_id\":1,\"error\":\"not executed\"}]}\n"
        )
    );
    let lines = text(chunked(9), fail(true, 0));
    let partial: Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
    assert_eq!(partial["results"][0]["partial"], true);
    assert_eq!(lines.lines().count(), 3);
}

#[test]
fn a_failure_after_rows_were_sent_stays_readable() {
    let run = |options| {
        let mut encoder = Encoder::new(options);
        let mut sent = Vec::new();
        encoder.begin_statement(0, None);
        encoder.batch(&part(&header("m", &[], &["time", "v"]), 0, 1, true));
        sent.extend(encoder.take());
        encoder.batch(&part(&header("m", &[], &["time", "v"]), 1, 2, true));
        encoder.fail_statement("bad", 0);
        encoder.begin_statement(1, None);
        encoder.end_statement();
        encoder.end();
        sent.extend(encoder.take());
        String::from_utf8(sent).unwrap()
    };
    assert_eq!(
        run(compact()),
        concat!(
            r#"{"results":[{"statement_id":0,"series":[{"name":"m","columns":["time","v"],"#,
            r#""values":[["1970-01-01T00:00:00Z",0],["1970-01-01T01:00:00Z",1]]}],"error":"bad"},"#,
            r#"{"statement_id":1}]}"#,
            "\n"
        )
    );
    assert_eq!(run(csv()), "name,tags,time,v\nm,,0,0\nm,,3600000000000,1\n\nerror\nbad\n");
}

#[test]
fn an_answer_that_is_full_says_where_it_was_cut() {
    let run = |rows: usize| {
        let document: Value = serde_json::from_str(&text(limited(rows), |e| {
            two_series(e);
            e.begin_statement(1, None);
            e.end_statement();
        }))
        .unwrap();
        let results = document["results"].as_array().unwrap().clone();
        assert!(results[0].get("partial").is_none());
        let series = results[0]["series"].as_array().unwrap();
        let rows = |s: &Value| (s["values"].as_array().unwrap().len(), s["partial"] == true);
        (results.len(), series.iter().map(rows).collect::<Vec<_>>())
    };
    assert_eq!(run(1), (1, vec![(1, true)]));
    assert_eq!(run(2), (1, vec![(2, true)]), "the series continues");
    assert_eq!(run(3), (1, vec![(3, false)]), "the series just ends here");
    assert_eq!(run(4), (1, vec![(3, false), (1, false)]));
    assert_eq!(run(5), (2, vec![(3, false), (1, false)]));
    let mut encoder = Encoder::new(limited(4));
    assert!(!encoder.is_full());
    two_series(&mut encoder);
    assert!(encoder.is_full());
}

/// Every kind of column, with a row that has all values and one that has none.
fn all_kinds() -> ResultBatch {
    let names = ["time", "i", "u", "f", "b", "s", "t", "t2"];
    let dictionary: Arc<Strings> = Arc::new(["a\"b"].into_iter().collect());
    let large: Arc<Strings> = Arc::new(["x", "<y>", "z"].into_iter().collect());
    let columns = vec![
        Values::Time(vec![1_500_000_000_123_000_000, 0]),
        Values::Integer(vec![i64::MIN, 0]),
        Values::Unsigned(vec![u64::MAX, 0]),
        Values::Float(vec![1e-7, 0.0]),
        Values::Boolean([true, false].into_iter().collect()),
        Values::String(["x, y\n", ""].into_iter().collect()),
        Values::Dictionary(vec![0, 0], dictionary),
        Values::Dictionary(vec![1, 0], large),
    ];
    let validity: Option<Bitmap> = Some([true, false].into_iter().collect());
    let columns = columns
        .into_iter()
        .enumerate()
        .map(|(at, values)| Column { values, validity: validity.clone().filter(|_| at > 0) });
    table(&header("m", &[], &names), columns.collect())
}

fn one_statement(part: &ResultBatch, zone: Option<ZoneOffset>) -> impl FnOnce(&mut Encoder) {
    move |e: &mut Encoder| {
        e.begin_statement(0, zone);
        e.batch(part);
        e.end_statement();
    }
}

#[test]
fn every_kind_of_value() {
    let part = all_kinds();
    let json = text(compact(), one_statement(&part, None));
    assert!(
        json.contains(concat!(
            r#"[["2017-07-14T02:40:00.123Z",-9223372036854775808,18446744073709551615,1e-7,true,"#,
            r#""x, y\n","a\"b","\u003cy\u003e"],"#,
            r#"["1970-01-01T00:00:00Z",null,null,null,null,null,null,null]]"#
        )),
        "{json}"
    );
    assert_eq!(
        text(csv(), one_statement(&part, None)),
        concat!(
            "name,tags,time,i,u,f,b,s,t,t2\n",
            "m,,1500000000123000000,-9223372036854775808,18446744073709551615,0.0000001,true,",
            "\"x, y\n\",\"a\"\"b\",<y>\n",
            "m,,0,,,,,,,\n"
        )
    );
    let floats = Values::Float(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 22.0]);
    let odd = table(&header("m", &[], &["f"]), vec![Column::new(floats)]);
    let json = text(compact(), one_statement(&odd, None));
    assert!(json.contains("[[null],[null],[null],[-0],[22]]"), "{json}");
    let csv = text(csv(), one_statement(&odd, None));
    assert_eq!(csv, "name,tags,f\nm,,\nm,,+Inf\nm,,-Inf\nm,,-0\nm,,22\n");
}

#[test]
fn times_as_numbers_and_in_zones() {
    let times = Values::Time(vec![1_500_000_000_123_456_789, -1_500_000_001]);
    let part = table(&header("m", &[], &["time"]), vec![Column::new(times)]);
    for (parameter, want) in [
        ("ns", "[[1500000000123456789],[-1500000001]]"),
        ("u", "[[1500000000123456],[-1500000]]"),
        ("ms", "[[1500000000123],[-1500]]"),
        ("s", "[[1500000000],[-1]]"),
        ("m", "[[25000000],[0]]"),
        ("h", "[[416666],[0]]"),
        ("other", "[[1500000000123456789],[-1500000001]]"),
    ] {
        let options = Options { epoch: Epoch::from_parameter(parameter), ..compact() };
        let json = text(options, one_statement(&part, None));
        assert!(json.contains(want), "{json}");
    }
    assert_eq!(Epoch::from_parameter(""), None);
    let zone = ZoneOffset::new(|time_ns| if time_ns < 0 { 3600 } else { -9000 });
    let json = text(compact(), one_statement(&part, Some(zone)));
    let want =
        r#"[["2017-07-14T00:10:00.123456789-02:30"],["1970-01-01T00:59:58.499999999+01:00"]]"#;
    assert!(json.contains(want), "{json}");
}

#[test]
fn csv_has_a_header_where_columns_change() {
    let work = |e: &mut Encoder| {
        let one = header("a b", &[("k 1", "v,w"), ("z", "")], &["time", "v"]);
        let two = header("\"q\"", &[("x", "1"), ("y", "2")], &["time", "v"]);
        let three = header("c", &[], &["time", "other"]);
        e.begin_statement(0, None);
        e.batch(&part(&one, 0, 1, false));
        e.batch(&part(&two, 0, 1, false));
        e.batch(&part(&three, 0, 1, false));
        e.end_statement();
        e.begin_statement(1, None);
        e.end_statement();
        e.begin_statement(2, None);
        e.batch(&part(&three, 0, 1, false));
        e.end_statement();
    };
    let options = Options { epoch: Some(Epoch::Hours), ..csv() };
    assert_eq!(
        text(options, work),
        concat!(
            "name,tags,time,v\n",
            "a b,\"k\\ 1=v\\,w\",0,0\n",
            "\"\"\"q\"\"\",\"x=1,y=2\",0,0\n",
            "\n",
            "name,tags,time,other\n",
            "c,,0,0\n",
            "\n",
            "name,tags,time,other\n",
            "c,,0,0\n"
        )
    );
    assert_eq!(Format::Csv.error("a, b"), b"error\n\"a, b\"\n");
    assert_eq!(Format::Csv.error(" x"), b"error\n\" x\"\n");
}

#[test]
fn messagepack_is_what_the_specification_says() {
    let options = Options { format: Format::MessagePack, ..Options::default() };
    let got = encoded(options, |e| {
        e.begin_statement(0, None);
        e.batch(&part(&header("m", &[("h", "a")], &["time", "v"]), 0, 1, true));
        assert_eq!(e.take(), b"", "lengths are not known yet");
        assert!(e.buffered_bytes() > 0);
        e.batch(&part(&header("m", &[("h", "a")], &["time", "v"]), 1, 2, false));
        e.end_statement();
        e.begin_statement(1, None);
        e.fail_statement("bad", 0);
    });
    let mut want = Vec::new();
    want.extend_from_slice(b"\x81\xa7results\x92\x82\xacstatement_id\x00\xa6series\x91\x84");
    want.extend_from_slice(b"\xa4name\xa1m\xa4tags\x81\xa1h\xa1a\xa7columns\x92\xa4time\xa1v");
    want.extend_from_slice(b"\xa6values\x92\x92\xc7\x0c\x05\0\0\0\0\0\0\0\0\0\0\0\0\x00");
    want.extend_from_slice(b"\x92\xc7\x0c\x05\0\0\0\0\0\0\x0e\x10\0\0\0\0\x01");
    want.extend_from_slice(b"\x81\xa5error\xa3bad");
    assert_eq!(got, want);
    assert_eq!(Format::MessagePack.error("x"), b"\x81\xa5error\xa1x");
    // Lengths and numbers of every size read back.
    let names: Vec<Name> = (0..20).map(|n| "x".repeat(n * n * n * 20).into()).collect();
    let header =
        Arc::new(SeriesHeader { columns: names.clone().into(), ..SeriesHeader::default() });
    let values: Vec<i64> =
        (0..64).flat_map(|bit| [1i64 << bit, !(1 << bit), !0 ^ (1 << bit) ^ 1]).collect();
    let integers = || Column::new(Values::Integer(values.clone()));
    let unsigned = values.iter().map(|v| v.cast_unsigned()).collect();
    let mut columns: Vec<Column> = (0..19).map(|_| integers()).collect();
    columns.push(Column::new(Values::Unsigned(unsigned)));
    let got = encoded(options, one_statement(&table(&header, columns), None));
    let read = reader::read(&got);
    let series = &read["results"][0]["series"][0];
    assert_eq!(series["columns"], json!(names.iter().map(|n| &**n).collect::<Vec<_>>()));
    for (row, value) in series["values"].as_array().unwrap().iter().zip(&values) {
        assert_eq!(row[3], json!(value));
        assert_eq!(row[19], json!(value.cast_unsigned()));
    }
}

/// Tags side by side and integers, none missing: what the hot loops are for. Of one series or of many, a row each.
#[test]
fn rows_of_tags_and_integers() {
    let rows = 40_usize;
    let names = ["time", "a", "b", "c", "d", "e", "n", "m"];
    let tag = |at: usize| {
        let texts: Strings = (0..at + 2)
            .map(|n| format!("{at}<{n}"))
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str)
            .collect();
        let codes = (0..rows).map(|row| (row * (at + 1) / 3 % (at + 2)) as u32).collect();
        Column::new(Values::Dictionary(codes, Arc::new(texts)))
    };
    let number = |from: i64| {
        Column::new(Values::Integer((0..rows as i64).map(|n| from + n * 317).collect()))
    };
    let times = Column::new(Values::Time((0..rows as i64).map(|row| row / 3 * HOUR).collect()));
    let columns: Vec<Column> =
        std::iter::once(times).chain((0..5).map(tag)).chain([number(-5), number(3)]).collect();
    let cell = |column: &Column, row: usize| match &column.values {
        Values::Dictionary(codes, texts) => json!(texts.get(codes[row] as usize)),
        Values::Time(times) => json!(times[row]),
        Values::Integer(values) => json!(values[row]),
        _ => panic!("not in this batch"),
    };
    let row = |row: usize| columns.iter().map(|column| cell(column, row)).collect::<Value>();
    let expected: Vec<Value> = (0..rows).map(row).collect();
    let batch = Arc::new(ColumnBatch { rows, runs: Vec::new(), columns: columns.clone() });
    let header = header("m", &[("k", "v")], &names);
    for (pretty, step) in [(false, rows), (false, 1), (false, 5), (true, rows), (true, 1)] {
        let options = Options {
            format: Format::Json { pretty },
            epoch: Some(Epoch::Nanoseconds),
            ..Options::default()
        };
        let written = text(options, |encoder| {
            encoder.begin_statement(0, None);
            for from in (0..rows).step_by(step) {
                let part = ResultBatch {
                    header: header.clone(),
                    batch: batch.clone(),
                    rows: from..from + step,
                    continues: false,
                };
                encoder.batch(&part);
            }
            encoder.end_statement();
        });
        let read: Value = serde_json::from_str(&written).unwrap();
        let series = read["results"][0]["series"].as_array().unwrap();
        assert_eq!(series.len(), rows / step);
        let found: Vec<&Value> =
            series.iter().flat_map(|series| series["values"].as_array().unwrap()).collect();
        assert_eq!(found, expected.iter().collect::<Vec<_>>(), "pretty {pretty}, {step} rows each");
    }
}
