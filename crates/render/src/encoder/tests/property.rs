//! Random answers read back, in every notation.

use proptest::prelude::*;

use super::*;

/// One column of a random answer: its kind and one value a row.
fn column(kind: u8, values: &[Option<(i64, String)>]) -> (Column, Vec<Value>) {
    let present = || values.iter().map(|v| v.clone().unwrap_or_default());
    let numbers = || present().map(|(n, _)| n);
    let texts: Vec<String> = present().map(|(_, text)| text).collect();
    let floats = || numbers().map(|n| f64::from_bits(n.cast_unsigned()));
    let strings: Strings = texts.iter().map(String::as_str).collect();
    let (values_of, json): (Values, Vec<Value>) = match kind % 6 {
        0 => (Values::Integer(numbers().collect()), numbers().map(|n| json!(n)).collect()),
        1 => {
            let unsigned = || numbers().map(i64::cast_unsigned);
            (Values::Unsigned(unsigned().collect()), unsigned().map(|n| json!(n)).collect())
        }
        // What is not finite is null on both sides.
        2 => (Values::Float(floats().collect()), floats().map(|f| json!(f)).collect()),
        3 => {
            let bits = || numbers().map(|n| n > 0);
            (Values::Boolean(bits().collect()), bits().map(|b| json!(b)).collect())
        }
        4 => (Values::String(strings), texts.iter().map(|t| json!(t)).collect()),
        _ => {
            let codes = (0..texts.len() as u32).collect();
            (Values::Dictionary(codes, Arc::new(strings)), texts.iter().map(|t| json!(t)).collect())
        }
    };
    let validity: Bitmap = values.iter().map(Option::is_some).collect();
    let json = json.into_iter().zip(values).map(|(j, v)| if v.is_some() { j } else { Value::Null });
    let json = json.collect();
    (Column { values: values_of, validity: Some(validity) }, json)
}

/// Whole floats are written as integers, and the reader of JSON is off by a bit for some others;
/// that every bit is written is tested where numbers are.
fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(x), Some(y)) if a.is_f64() || b.is_f64() => {
            (x - y).abs() <= 1e-14 * y.abs() + f64::MIN_POSITIVE
        }
        _ => a == b,
    }
}

fn without_space(json: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::new(), false, false);
    for c in json.chars() {
        match c {
            '"' if !escaped => quoted = !quoted,
            ' ' | '\n' if !quoted => continue,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        out.push(c);
    }
    out
}

proptest! {
    #[test]
    fn any_rows_read_back(
        kinds in prop::collection::vec(any::<u8>(), 1..6),
        rows in prop::collection::vec(prop::option::of((any::<i64>(), ".{0,6}")), 1..40),
        cut in 0usize..40,
        chunk in 1usize..50,
    ) {
        let made: Vec<(Column, Vec<Value>)> = kinds
            .iter()
            .enumerate()
            .map(|(at, kind)| {
                let mut rows = rows.clone();
                let by = at % rows.len();
                rows.rotate_left(by);
                column(*kind, &rows)
            })
            .collect();
        let names: Vec<String> = (0..made.len()).map(|at| format!("c{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let header = header("m", &[], &names);
        let whole = table(&header, made.iter().map(|(column, _)| column.clone()).collect());
        let cut = cut % rows.len();
        let range = |range: Range<usize>, continues| {
            let column = |c: &Column| {
                let values = match &c.values {
                    Values::Dictionary(_, texts) => Values::Dictionary(Vec::new(), texts.clone()),
                    Values::Integer(_) => Values::Integer(Vec::new()),
                    Values::Unsigned(_) => Values::Unsigned(Vec::new()),
                    Values::Float(_) => Values::Float(Vec::new()),
                    Values::Boolean(_) => Values::Boolean(Bitmap::new()),
                    Values::String(_) | Values::Time(_) => Values::String(Strings::new()),
                };
                let mut part = Column::new(values);
                part.extend_from(c, range.clone());
                part
            };
            let columns = whole.batch.columns.iter().map(column).collect();
            ResultBatch { continues, ..table(&header, columns) }
        };
        let work = |e: &mut Encoder| {
            e.begin_statement(0, None);
            e.batch(&range(0..cut, true));
            e.batch(&range(cut..rows.len(), false));
            e.end_statement();
        };
        let one = text(compact(), work);
        let pretty = Options { format: Format::Json { pretty: true }, ..compact() };
        prop_assert_eq!(without_space(&text(pretty, work)), without_space(&one));
        let packed = Options { format: Format::MessagePack, ..compact() };
        let documents: Vec<Value> =
            text(chunked(chunk), work).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let chunks: Vec<Value> = documents
            .iter()
            .flat_map(|d| d["results"][0]["series"][0]["values"].as_array().unwrap().clone())
            .collect();
        prop_assert_eq!(documents.len(), rows.len().div_ceil(chunk));
        let json: Value = serde_json::from_str(&one).unwrap();
        let values = |document: &Value| document["results"][0]["series"][0]["values"].clone();
        prop_assert_eq!(&values(&json), &Value::Array(chunks));
        let unpacked = values(&reader::read(&encoded(packed, work)));
        for (at, (_, column)) in made.iter().enumerate() {
            for (row, want) in column.iter().enumerate() {
                let got = &values(&json)[row][at];
                prop_assert!(same(got, want), "{got} {want}");
                let got = &unpacked[row][at];
                prop_assert!(same(got, want), "{got} {want}");
            }
        }
    }

    #[test]
    fn any_text_survives_csv(texts in prop::collection::vec(".{0,8}|[\",\r\n \\\\.]{0,4}", 1..8)) {
        let values = Values::String(texts.iter().map(String::as_str).collect());
        let part = table(&header("m", &[], &["s"]), vec![Column::new(values)]);
        let csv = text(csv(), one_statement(&part, None));
        let mut rest = csv.strip_prefix("name,tags,s\n").unwrap();
        for text in &texts {
            rest = rest.strip_prefix("m,,").unwrap();
            let quoted = format!("\"{}\"\n", text.replace('"', "\"\""));
            let plain = format!("{text}\n");
            let after = rest.strip_prefix(&quoted).or_else(|| rest.strip_prefix(&plain));
            rest = after.unwrap();
            let needs = text.contains([',', '"', '\r', '\n']) || text.starts_with(char::is_whitespace);
            prop_assert!(!needs || csv.contains(&quoted));
        }
        prop_assert_eq!(rest, "");
    }
}
