use proptest::prelude::*;

use super::*;

fn parse(text: &[u8]) -> Parsed<'_> {
    let options = ParseOptions { precision: Precision::Nanosecond, default_time_ns: 7 };
    LineParser::new().parse(text, &options)
}

/// The good rows in a readable form.
fn rows(text: &str) -> Vec<String> {
    let parsed = parse(text.as_bytes());
    let batch = &parsed.batch;
    batch
        .rows
        .iter()
        .map(|row| {
            let layout = &batch.layouts[row.layout as usize];
            let fields: Vec<String> = layout
                .fields
                .iter()
                .zip(batch.row_values(row))
                .map(|(field, slot)| {
                    let value = match field.field_type {
                        model::FieldType::Float => format!("{:?}", f64::from_bits(*slot)),
                        model::FieldType::Integer => format!("{}i", *slot as i64),
                        model::FieldType::Unsigned => format!("{slot}u"),
                        model::FieldType::Boolean => format!("{}", *slot == 1),
                        model::FieldType::String => {
                            format!("{:?}", String::from_utf8_lossy(batch.string(*slot)))
                        }
                    };
                    format!("{}={value}", field.name)
                })
                .collect();
            let key = String::from_utf8_lossy(batch.raw_key(row)).into_owned();
            assert_eq!(row.key_hash, key_hash(key.as_bytes()));
            format!("{key}|{}|{} {}", layout.measurement, fields.join(","), row.time_ns)
        })
        .collect()
}

fn reasons(text: &str) -> Vec<String> {
    parse(text.as_bytes())
        .problems
        .into_iter()
        .map(|p| match p.kind {
            ProblemKind::Unparsable(text) => text,
            ProblemKind::Dropped(text) => format!("dropped: {text}"),
        })
        .collect()
}

#[test]
fn reads_every_type_and_form() {
    assert_eq!(
        rows("m,a=1 i=5i,j=-7i,u=5u,f=1,g=-.5,h=1.,k=1e5,t=t,b=FALSE,s=\"x\" 12\n"),
        ["m,a=1|m|i=5i,j=-7i,u=5u,f=1.0,g=-0.5,h=1.0,k=100000.0,t=true,b=false,s=\"x\" 12"]
    );
    assert_eq!(rows("m v=9223372036854775807i"), ["m|m|v=9223372036854775807i 7"]);
    assert_eq!(rows("m v=-9223372036854775808i"), ["m|m|v=-9223372036854775808i 7"]);
    let twice = "m v=-9223372036854775808i,w=9999999999999999999u 1\n".repeat(2);
    let row = "m|m|v=-9223372036854775808i,w=9999999999999999999u 1";
    assert_eq!(rows(&twice), [row, row], "the fast path gives up without overflowing");
    assert_eq!(rows("m v=18446744073709551615u"), ["m|m|v=18446744073709551615u 7"]);
}

#[test]
fn repeated_layouts_take_the_fast_path_with_the_same_result() {
    let lines = "cpu,h=a x=1i,y=2.5,s=\"q\" 10\ncpu,h=b x=-2i,y=3,s=\"\" 10\nmem,h=b z=1 10\n\
                 cpu,h=c x=3i,y=-4.25,s=\"a \\\" b\" 11\nmem,h=c z=2 11";
    assert_eq!(
        rows(lines),
        [
            "cpu,h=a|cpu|x=1i,y=2.5,s=\"q\" 10",
            "cpu,h=b|cpu|x=-2i,y=3.0,s=\"\" 10",
            "mem,h=b|mem|z=1.0 10",
            "cpu,h=c|cpu|x=3i,y=-4.25,s=\"a \\\" b\" 11",
            "mem,h=c|mem|z=2.0 11",
        ]
    );
    assert_eq!(parse(lines.as_bytes()).batch.layouts.len(), 2);
}

#[test]
fn skips_blank_lines_comments_and_carriage_returns() {
    assert_eq!(
        rows("\n  \t\n# c\n#\n m v=1 1\r\n\r\nm v=2\r\n\tm v=3 3  \n"),
        ["m|m|v=1.0 1", "m|m|v=2.0 7", "m|m|v=3.0 3"]
    );
    assert_eq!(rows(""), Vec::<String>::new());
}

#[test]
fn honours_escapes_where_they_are_legal() {
    assert_eq!(
        rows("m\\ 1\\,x,t\\ a=b\\,c\\=d f\\ 1\\,\\=x=\"a\\\\b\\\"c\\n\" 1"),
        [r#"m\ 1\,x,t\ a=b\,c\=d|m 1,x|f 1,=x="a\\b\"c\\n" 1"#]
    );
}

#[test]
fn keeps_newlines_inside_strings() {
    assert_eq!(
        rows("m s=\"a\nb\" 1\nm s=\"c\nd\" 2\nm s=\"e\""),
        ["m|m|s=\"a\\nb\" 1", "m|m|s=\"c\\nd\" 2", "m|m|s=\"e\" 7"]
    );
}

#[test]
fn of_a_field_given_twice_the_last_counts_and_time_is_no_field() {
    assert_eq!(
        rows("m a=1,b=2,a=3 1\nm a=1,b=2,a=4 2"),
        ["m|m|b=2.0,a=3.0 1", "m|m|b=2.0,a=4.0 2"]
    );
    assert_eq!(rows("m time=5,a=1 1"), ["m|m|a=1.0 1"]);
    assert_eq!(
        reasons("m time=5 1"),
        ["dropped: invalid field name: input field \"time\" on measurement \"m\" is invalid"]
    );
}

#[test]
fn scales_times() {
    let at = |text: &'static str, precision| {
        let options = ParseOptions { precision, default_time_ns: 0 };
        LineParser::new().parse(text.as_bytes(), &options).batch.rows.first().map(|r| r.time_ns)
    };
    assert_eq!(at("m v=1 5", Precision::Hour), Some(5 * 3_600_000_000_000));
    assert_eq!(at("m v=1 -5", Precision::Microsecond), Some(-5_000));
    assert_eq!(at("m v=1 9223372036854775806", Precision::Nanosecond), Some(i64::MAX - 1));
    assert_eq!(at("m v=1 9223372036854775807", Precision::Nanosecond), None);
    assert_eq!(at("m v=1 9223372036854775", Precision::Second), None);
}

#[test]
fn says_what_is_wrong_as_influxdb_does() {
    for (line, reason) in [
        ("m", "missing fields"),
        ("m ", "missing fields"),
        ("m,a=1", "missing fields"),
        ("m,a=\\", "missing fields"),
        (",a=1 v=x", "missing measurement"),
        ("m,a v=x", "missing tag value"),
        ("m,a= v=x", "missing tag value"),
        ("m,=x v", "missing tag key"),
        ("m,a=1,a=2 v=1 x", "duplicate tags"),
        ("m,a=1=2 v=1 x", "invalid tag format"),
        ("m v", "invalid field format"),
        ("m v=1,w", "invalid field format"),
        ("m =1", "missing field key"),
        ("m v=1,=2", "missing field key"),
        ("m v=", "missing field value"),
        ("m v=,w=1", "missing field value"),
        ("m v=abc", "invalid boolean"),
        ("m v=tru", "invalid boolean"),
        ("m v=1x", "invalid number"),
        ("m v=--1", "invalid number"),
        ("m v=1.5i", "invalid number"),
        ("m v=nan", "invalid number"),
        ("m v=+1", "invalid boolean"),
        ("m v=1e", "invalid float"),
        ("m v=1e400", "invalid float"),
        ("m v=1.1.1", "invalid number"),
        ("m v=\"a", "unbalanced quotes"),
        ("m v=\"a\"b", "invalid field format"),
        ("m v=1 x", "bad timestamp"),
        ("m v=1 1.5", "bad timestamp"),
        ("m v=1 1 2", "point is invalid"),
        (
            "m v=1 99999999999999999999",
            "strconv.ParseInt: parsing \"99999999999999999999\": value out of range",
        ),
        (
            "m v=9223372036854775808i",
            "unable to parse integer 9223372036854775808: strconv.ParseInt: parsing \"9223372036854775808\": value out of range",
        ),
    ] {
        assert_eq!(reasons(line), [format!("unable to parse '{line}': {reason}")]);
    }
}

#[test]
fn leaves_keys_to_the_store() {
    for line in ["m,a= v=1 1", "m,a=1,a=2 v=1 1"] {
        assert_eq!((parse(line.as_bytes()).batch.rows.len(), reasons(line).len()), (1, 0));
    }
}

#[test]
fn a_bad_line_leaves_its_neighbours_alone() {
    let text = "m v=1 1\nm v=x 2\nm v=3 3\nm s=\"open 4\nm v=5 5\n";
    assert_eq!(rows(text), ["m|m|v=1.0 1", "m|m|v=3.0 3", "m|m|v=5.0 5"]);
    assert_eq!(reasons(text).len(), 2);
    let mut bytes = b"m v=1 1\nm,t=\xff v=2 2\nm v=3 3".to_vec();
    let parsed = parse(&bytes);
    assert_eq!((parsed.batch.rows.len(), parsed.problems.len()), (2, 1));
    bytes.truncate(9);
    assert_eq!(parse(&bytes).problems.len(), 1);
}

#[test]
fn a_body_in_pieces_is_one_body() {
    let options = ParseOptions { precision: Precision::Nanosecond, default_time_ns: 7 };
    let mut parser = LineParser::new();
    let pieces = [&b"m,t=1 v=1 1\nm v=x 2\n"[..], b"", b"m,t=3 v=3 1\r\n", b"m,t=4 v=4\nm v=y"];
    let parsed = parser.parse_pieces(&pieces, &options).unwrap();
    let batch = &parsed.batch;
    let keys: Vec<&[u8]> = batch.rows.iter().map(|row| batch.raw_key(row)).collect();
    assert_eq!(keys, [b"m,t=1", b"m,t=3", b"m,t=4"]);
    let lines: Vec<&[u8]> = batch.rows.iter().map(|row| batch.line(row)).collect();
    assert_eq!(lines, [&b"m,t=1 v=1 1"[..], b"m,t=3 v=3 1", b"m,t=4 v=4"]);
    assert_eq!(batch.layouts.len(), 1);
    let starts: Vec<u32> = parsed.problems.iter().map(|problem| problem.line_start).collect();
    assert_eq!(starts, [12, 43]);
}

#[test]
fn a_quoted_newline_at_the_end_of_a_piece_is_seen() {
    let options = ParseOptions { precision: Precision::Nanosecond, default_time_ns: 7 };
    let mut parser = LineParser::new();
    let pieces = [&b"m s=\"a\nb\" 1\nm s=\"c\n"[..], b"d\" 2\n"];
    assert!(parser.parse_pieces(&pieces, &options).is_none());
    let whole = parser.parse_pieces(&pieces[..1], &options).unwrap();
    assert_eq!((whole.batch.rows.len(), whole.problems.len()), (1, 1), "the last may be open");
}

#[test]
fn bodies_parsed_together_stay_apart() {
    let at = |default_time_ns| ParseOptions { precision: Precision::Nanosecond, default_time_ns };
    let seconds = ParseOptions { precision: Precision::Second, default_time_ns: 9 };
    let open = b"m s=\"a\nm v=1 1";
    let bodies =
        [(&b"m v=1"[..], at(5)), (open, at(6)), (b"", at(7)), (b"m v=2 3\nm v=4", seconds)];
    let parsed = LineParser::new().parse_bodies(&bodies);
    let batch = &parsed.batch;
    let times: Vec<i64> = batch.rows.iter().map(|row| row.time_ns).collect();
    assert_eq!(times, [5, 1, 3_000_000_000, 9]);
    let lines: Vec<&[u8]> = batch.rows.iter().map(|row| batch.line(row)).collect();
    assert_eq!(lines, [&b"m v=1"[..], b"m v=1 1", b"m v=2 3", b"m v=4"]);
    let starts: Vec<u32> = batch.rows.iter().map(|row| row.line_start).collect();
    assert_eq!((starts, batch.layouts.len()), (vec![0, 12, 19, 27], 1));
    let problems: Vec<u32> = parsed.problems.iter().map(|problem| problem.line_start).collect();
    assert_eq!(problems, [5], "what is open at the end of a body goes on in no other");
}

#[test]
fn names_are_compared_to_the_last_byte() {
    for len in 0..30 {
        let name = vec![b'x'; len];
        assert!(fields::same(&name, &name.clone()));
        for at in 0..len {
            let mut other = name.clone();
            other[at] = b'y';
            assert!(!fields::same(&name, &other), "{len} {at}");
        }
    }
}

#[test]
fn buffers_are_kept() {
    let options = ParseOptions { precision: Precision::Nanosecond, default_time_ns: 0 };
    let mut parser = LineParser::new();
    let first = parser.parse(b"m v=1,s=\"x\" 1", &options).batch;
    parser.recycle(first);
    let second = parser.parse(b"m v=2 1", &options).batch;
    assert_eq!((second.rows.len(), second.values.len(), second.strings.len()), (1, 1, 0));
}

proptest! {
    #[test]
    fn floats_are_read_to_the_last_bit(bits in any::<u64>(), digits in 0usize..20) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        for text in [format!("{value:?}"), format!("{value:e}"), format!("{value:.digits$}")] {
            let expected: f64 = text.parse().unwrap();
            let line = format!("m v={text} 1\nm v={text} 1");
            let parsed = parse(line.as_bytes());
            prop_assert_eq!(parsed.batch.values, [expected.to_bits(); 2], "{}", text);
        }
    }

    #[test]
    fn the_fast_path_agrees_with_the_exact_one(
        lines in prop::collection::vec(
            "(m|cpu,h=[ab]|m\\\\ x) (v=-?[0-9]{1,3}i?|s=\"[a\\\\\" \n]{0,4}\"|v=[0-9.e-]{1,6}|b=[tf])\
             (,w=[0-9]{1,2}i)?( -?[0-9]{0,19})?[ \r]?", 1..8)
    ) {
        let text = lines.join("\n");
        let parsed = parse(text.as_bytes());
        // Line by line there is no layout to expect, so only the exact path runs.
        let mut at = 0;
        let mut single = Vec::new();
        while at < text.len() {
            let next = fields::exact_line_end(text.as_bytes(), at).next;
            single.extend(rows(&text[at..next.min(text.len())]));
            at = next;
        }
        prop_assert_eq!(rows(&text), single);
        prop_assert!(parsed.batch.rows.len() + parsed.problems.len() <= text.lines().count() + 1);
        // In pieces as well, whatever the first byte is for.
        crate::fuzzing::line_protocol(format!("n{text}").as_bytes());
    }

    #[test]
    fn arbitrary_bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..200)) {
        crate::fuzzing::line_protocol(&data);
    }

    #[test]
    fn arbitrary_lines_never_panic(data in "([mv=, \\\\\"1it.\n\r#-]|\u{e9}){0,60}") {
        crate::fuzzing::line_protocol(data.as_bytes());
    }
}

#[test]
fn a_key_and_a_field_name_are_no_longer_than_a_key() {
    let longest = KEY_BYTES_MAX - FIELD_SEPARATOR_BYTES;
    for name in ["f", "field"] {
        for (more, fits) in [(0, true), (1, false)] {
            let key = "k".repeat(longest - name.len() + more);
            // The first line has the same layout, so that the second one may take the fast path.
            let text = format!("k {name}=1 1\n{key} {name}=1 1\nk,t={} {name}=1 1", &key[4..]);
            for exact_only in [false, true] {
                let mut parser = LineParser::new();
                let options = ParseOptions { precision: Precision::Nanosecond, default_time_ns: 0 };
                let parsed = parser.parse_with(&[text.as_bytes()], &options, exact_only).unwrap();
                assert_eq!(parsed.batch.rows.len(), if fits { 3 } else { 1 }, "{name} {more}");
                for problem in &parsed.problems {
                    let ProblemKind::Unparsable(text) = &problem.kind else {
                        panic!("{problem:?}")
                    };
                    assert!(text.ends_with("max key length exceeded: 65536 > 65535"), "{text}");
                }
            }
        }
    }
}
