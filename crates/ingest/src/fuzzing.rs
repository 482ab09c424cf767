//! Entry points for fuzz targets.

use model::{FieldType, LineBatch, LineRow, SeriesKey, key_hash};

use crate::collectd::{CollectdParser, MultiValue, SecurityLevel, TypesDb, Users};
use crate::graphite::GraphiteParser;
use crate::line_protocol::{LineParser, ParseOptions, Parsed, Precision};
use crate::opentsdb::{parse_json, parse_line};
use crate::point::Lines;
use crate::prometheus::{BodyError, read_queries, write_rows};

const PRECISIONS: [Precision; 6] = [
    Precision::Nanosecond,
    Precision::Microsecond,
    Precision::Millisecond,
    Precision::Second,
    Precision::Minute,
    Precision::Hour,
];

/// Parses `data` as a body of line protocol, whose first byte picks the precision. The fast path and
/// the exact one must agree on every line, rows must lie within the body, a body in pieces must
/// say what the whole says, and two bodies together what each says alone.
///
/// # Panics
/// When that is not so, which is a bug.
pub fn line_protocol(data: &[u8]) {
    let Some((first, body)) = data.split_first() else { return };
    let precision = PRECISIONS[usize::from(*first) % PRECISIONS.len()];
    let options = ParseOptions { precision, default_time_ns: 7 };
    let fast = LineParser::new().parse(body, &options);
    let exact = LineParser::new().parse_with(&[body], &options, true);
    let exact = exact.expect("BUG: nothing is behind the last piece");
    assert_eq!(fast.problems, exact.problems, "BUG: the paths differ in what they refuse");
    assert_eq!(rows(&fast), rows(&exact), "BUG: the paths differ in what they read");
    let pieces: Vec<&[u8]> = body.split_inclusive(|byte| *byte == b'\n').collect();
    if let Some(pieced) = LineParser::new().parse_pieces(&pieces, &options) {
        assert_eq!(pieced.problems, fast.problems, "BUG: pieces are refused otherwise");
        assert_eq!(rows(&pieced), rows(&fast), "BUG: pieces are read otherwise");
    }
    together(body.split_at(body.len() / 2), options);
    let lines = body.split(|byte| *byte == b'\n').count();
    assert!(fast.batch.rows.len() + fast.problems.len() <= lines, "BUG: more rows than lines");
}

/// Two bodies that are parsed together say what each says alone.
fn together((first, second): (&[u8], &[u8]), options: ParseOptions) {
    let together = LineParser::new().parse_bodies(&[(first, options), (second, options)]);
    let [first_alone, mut second_alone] =
        [first, second].map(|body| LineParser::new().parse(body, &options));
    let start = first.len() as u32;
    second_alone.problems.iter_mut().for_each(|problem| problem.line_start += start);
    let problems = [first_alone.problems.clone(), second_alone.problems.clone()].concat();
    assert_eq!(together.problems, problems, "BUG: bodies are refused otherwise together");
    let mut alone = rows(&first_alone);
    alone.extend(rows(&second_alone).into_iter().map(|(row, measurement, fields)| {
        (LineRow { line_start: row.line_start + start, ..row }, measurement, fields)
    }));
    assert_eq!(rows(&together), alone, "BUG: bodies are read otherwise together");
}

/// Reads the first line of `data` as a template of Graphite and the others as its lines.
///
/// # Panics
/// When a point that was added cannot be read again, which is a bug.
pub fn graphite(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut rest = text.lines();
    let templates: Vec<String> = rest.next().into_iter().map(str::to_owned).collect();
    let parser = GraphiteParser::new(&templates, "_", &["k=v".to_owned()])
        .or_else(|_| GraphiteParser::new(&[], ".", &[]));
    let Ok(parser) = parser else { return };
    let mut lines = Lines::default();
    for line in rest {
        let before = lines.points();
        let added = parser.parse(line, 7, &mut lines).is_ok();
        assert_eq!(lines.points() - before, usize::from(added), "BUG: not one point a line");
    }
    check_lines(lines);
}

/// Reads `data` as lines of OpenTSDB and as a body of its JSON.
///
/// # Panics
/// When a point that was added cannot be read again, which is a bug.
pub fn opentsdb(data: &[u8]) {
    let mut lines = Lines::default();
    for line in data.split(|byte| *byte == b'\n').filter_map(|l| std::str::from_utf8(l).ok()) {
        let _ = parse_line(line, &mut lines);
    }
    check_lines(lines);
    let mut lines = Lines::default();
    let _ = parse_json(data, &mut lines);
    check_lines(lines);
}

/// Reads `data`, the first line as a file of types, the rest as a packet of collectd.
///
/// # Panics
/// When a point that was added cannot be read again, which is a bug.
pub fn collectd(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').map_or(data.len(), |end| end + 1);
    let (first, packet) = data.split_at(end);
    let mut types = TypesDb::default();
    if let Ok(text) = std::str::from_utf8(first) {
        let _ = types.add(text);
    }
    for mode in [MultiValue::Split, MultiValue::Join] {
        let plain = CollectdParser::new(types.clone(), mode);
        let secured = plain.clone().secured(SecurityLevel::None, Users::default());
        for parser in [plain, secured] {
            let mut lines = Lines::default();
            let parsed = parser.parse(packet, &mut lines);
            assert!(parsed.is_ok() || lines.is_empty(), "BUG: points of a packet that is none");
            check_lines(lines);
        }
    }
}

/// Every point must be a line that is read again; only its key may turn out to be none.
fn check_lines(lines: Lines) {
    let (points, text) = (lines.points(), lines.into_text());
    let options = ParseOptions { precision: Precision::Nanosecond, default_time_ns: 0 };
    let parsed = LineParser::new().parse(&text, &options);
    let read = parsed.batch.rows.len() + parsed.problems.len();
    assert_eq!(read, points, "BUG: a point is not one line");
}

/// Reads `data` as the body of a remote write and of a remote read. Every row's key must name its
/// measurement, or be none at all.
///
/// # Panics
/// When that is not so, which is a bug.
pub fn prometheus(data: &[u8]) {
    let _ = read_queries(data);
    let batch = match write_rows(data) {
        Ok(parsed) => parsed.batch,
        Err(BodyError::Malformed(_) | BodyError::TooLarge) => return,
    };
    for row in &batch.rows {
        let key = batch.raw_key(row);
        assert_eq!(row.key_hash, key_hash(key), "BUG: the hash is another key's");
        assert!(f64::from_bits(batch.row_values(row)[0]).is_finite(), "BUG: nothing writes that");
        // The store refuses what is no key, by name.
        let Ok(key) = SeriesKey::parse(key) else { continue };
        let measurement = &*batch.layouts[row.layout as usize].measurement;
        assert_eq!(&*key.measurement, measurement, "BUG: a key of another measurement");
    }
}

/// All that a row says, names in place of numbers.
type Spelled<'a> = (LineRow, &'a str, Vec<(&'a str, FieldType, &'a [u8], u64)>);

fn rows<'a>(parsed: &'a Parsed<'_>) -> Vec<Spelled<'a>> {
    parsed.batch.rows.iter().map(|row| spelled(&parsed.batch, row)).collect()
}

fn spelled<'a>(batch: &'a LineBatch<'_>, row: &LineRow) -> Spelled<'a> {
    assert!(batch.line(row).starts_with(batch.raw_key(row)), "BUG: a key outside of its line");
    let layout = &batch.layouts[row.layout as usize];
    let fields = layout.fields.iter().zip(batch.row_values(row)).map(|(field, slot)| {
        let (text, bits) = match field.field_type {
            FieldType::String => (batch.string(*slot), 0),
            _ => (&b""[..], *slot),
        };
        assert!(std::str::from_utf8(text).is_ok(), "BUG: a string that is not UTF-8");
        (&*field.name, field.field_type, text, bits)
    });
    // Numbers that need not be the same.
    let row = LineRow { layout: 0, values_start: 0, ..*row };
    (row, &layout.measurement, fields.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_seeds_are_good() {
        graphite(include_bytes!("../../../fuzz/seeds/graphite/templates"));
        graphite(include_bytes!("../../../fuzz/seeds/graphite/plain"));
        opentsdb(include_bytes!("../../../fuzz/seeds/opentsdb/lines"));
        opentsdb(include_bytes!("../../../fuzz/seeds/opentsdb/json"));
        collectd(include_bytes!("../../../fuzz/seeds/collectd/typed"));
        collectd(include_bytes!("../../../fuzz/seeds/collectd/untyped"));
    }

    proptest! {
        #[test]
        fn odd_names_stay_on_their_line(
            names in prop::collection::vec("[a\"\\\\,= #\\t'\u{e9}.]{1,6}", 1..6),
        ) {
            let mut lines = Lines::default();
            for name in &names {
                let _ = lines.push(name, [(name.as_str(), name.as_str())], [(name.as_str(), 1.0)], 5);
            }
            check_lines(lines);
            let put: String =
                names.iter().map(|name| format!("put {name} 1479496100 1 {name}={name}\n")).collect();
            opentsdb(put.as_bytes());
            let paths: String = names.iter().map(|name| format!("{name} 1 5\n")).collect();
            graphite(format!("measurement.field*\n{paths}").as_bytes());
        }
    }
}
