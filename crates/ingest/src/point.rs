//! Points of other protocols in line protocol: one way into the store for all of them.

use std::io::Write as _;

use model::key::{has_any, push_escaped};

/// Lines, gathered.
#[derive(Debug, Default)]
pub struct Lines {
    text: Vec<u8>,
    points: usize,
}

/// A point that line protocol has no words for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointError {
    /// A name is empty, starts a comment, would open a text, has a line end, ends with a backslash, or has one where the next character
    /// would have to be escaped.
    #[error("a name that cannot be written down")]
    Name,
    /// There is no field, or one whose value is no number.
    #[error("no value")]
    Value,
}

impl Lines {
    /// Adds a point of floats, all of which must be numbers. Tags without a value are left out.
    ///
    /// # Errors
    /// [`PointError`]: nothing was added.
    pub fn push<'a>(
        &mut self,
        measurement: &str,
        tags: impl IntoIterator<Item = (&'a str, &'a str)>,
        fields: impl IntoIterator<Item = (&'a str, f64)>,
        time_ns: i64,
    ) -> Result<(), PointError> {
        self.push_with(measurement, tags, fields, time_ns, put_float)
    }

    /// The same with integers.
    ///
    /// # Errors
    /// [`PointError`]: nothing was added.
    pub fn push_integers<'a>(
        &mut self,
        measurement: &str,
        tags: impl IntoIterator<Item = (&'a str, &'a str)>,
        fields: impl IntoIterator<Item = (&'a str, i64)>,
        time_ns: i64,
    ) -> Result<(), PointError> {
        self.push_with(measurement, tags, fields, time_ns, |text, value| {
            write!(text, "{value}i").is_ok()
        })
    }

    fn push_with<'a, T>(
        &mut self,
        measurement: &str,
        tags: impl IntoIterator<Item = (&'a str, &'a str)>,
        fields: impl IntoIterator<Item = (&'a str, T)>,
        time_ns: i64,
        put: impl Fn(&mut Vec<u8>, T) -> bool,
    ) -> Result<(), PointError> {
        let start = self.text.len();
        let added = self.add(measurement, tags, fields, time_ns, put);
        match added {
            Ok(()) => self.points += 1,
            Err(_) => self.text.truncate(start),
        }
        added
    }

    fn add<'a, T>(
        &mut self,
        measurement: &str,
        tags: impl IntoIterator<Item = (&'a str, &'a str)>,
        fields: impl IntoIterator<Item = (&'a str, T)>,
        time_ns: i64,
        put: impl Fn(&mut Vec<u8>, T) -> bool,
    ) -> Result<(), PointError> {
        // A line that starts with # is a comment, white space before it or not.
        let blank = |c: char| c != ' ' && (c.is_whitespace() || c.is_control());
        if measurement.starts_with('#') || measurement.starts_with(blank) {
            return Err(PointError::Name);
        }
        put_name(&mut self.text, measurement, b", ")?;
        for (key, value) in tags.into_iter().filter(|(_, value)| !value.is_empty()) {
            self.text.push(b',');
            put_name(&mut self.text, key, b",= ")?;
            self.text.push(b'=');
            put_name(&mut self.text, value, b",= ")?;
        }
        let mut separator = b' ';
        for (field, value) in fields {
            self.text.push(separator);
            // A quote would open a text, which the next line may end.
            if field.contains('"') {
                return Err(PointError::Name);
            }
            put_name(&mut self.text, field, b",= ")?;
            self.text.push(b'=');
            if !put(&mut self.text, value) {
                return Err(PointError::Value);
            }
            separator = b',';
        }
        if separator == b' ' {
            return Err(PointError::Value);
        }
        let _ = writeln!(self.text, " {time_ns}");
        Ok(())
    }

    /// Number of points.
    #[must_use]
    pub fn points(&self) -> usize {
        self.points
    }

    /// Length of the text, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points == 0
    }

    /// The text, times in nanoseconds.
    #[must_use]
    pub fn into_text(self) -> Vec<u8> {
        self.text
    }
}

/// Writes a number, shortest, and with an exponent where that is shorter; says whether it can be stored.
fn put_float(text: &mut Vec<u8>, value: f64) -> bool {
    if value.is_finite() {
        text.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    }
    value.is_finite()
}

/// Writes a name, with a backslash before each of `special`.
fn put_name<const N: usize>(
    text: &mut Vec<u8>,
    name: &str,
    special: &[u8; N],
) -> Result<(), PointError> {
    push_escaped(text, checked(name)?.as_bytes(), special);
    Ok(())
}

fn checked(name: &str) -> Result<&str, PointError> {
    if !name.is_empty() && !has_any(name.as_bytes(), b"\\\n\r") {
        return Ok(name);
    }
    let escaping = |pair: &[u8]| pair[0] == b'\\' && b",= ".contains(&pair[1]);
    let odd = name.is_empty()
        || name.ends_with('\\')
        || name.contains(['\n', '\r'])
        || name.as_bytes().windows(2).any(escaping);
    if odd { Err(PointError::Name) } else { Ok(name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line_protocol::{LineParser, ParseOptions, Precision};
    use model::{Scalar, SeriesKey};
    use proptest::prelude::*;

    #[test]
    fn points_are_lines() {
        let mut lines = Lines::default();
        for (value, want) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (-12.0, "-12.0"),
            (1e15, "1000000000000000.0"),
            (1e22, "1e+22"),
        ] {
            let mut text = Vec::new();
            assert!(put_float(&mut text, value));
            let text = str::from_utf8(&text).unwrap();
            assert_eq!((text, text.parse::<f64>().unwrap().to_bits()), (want, value.to_bits()));
        }
        let tags = [("host name", "a,b"), ("none", "")];
        lines.push("m x", tags, [("v=1", 1.5), ("w", 2.0)], 7).unwrap();
        lines.push_integers("m", [], [("n", -3)], -1).unwrap();
        assert_eq!(lines.push("", [], [("v", 1.0)], 0), Err(PointError::Name));
        assert_eq!(lines.push("m", [("k\n", "v")], [("v", 1.0)], 0), Err(PointError::Name));
        assert_eq!(lines.push("m", [], [("v", f64::INFINITY)], 0), Err(PointError::Value));
        assert_eq!(lines.push("m", [], [("v", 1.0), ("w", f64::NAN)], 0), Err(PointError::Value));
        assert_eq!(lines.push("m", [], [], 0), Err(PointError::Value));
        for odd in ["#m", "\t#m"] {
            assert_eq!(lines.push(odd, [], [("v", 1.0)], 0), Err(PointError::Name));
        }
        assert_eq!(lines.push("m", [], [("a\"b", 1.0)], 0), Err(PointError::Name));
        assert_eq!(lines.points(), 2);
        let text = String::from_utf8(lines.into_text()).unwrap();
        assert_eq!(text, "m\\ x,host\\ name=a\\,b v\\=1=1.5,w=2.0 7\nm n=-3i -1\n");
    }

    proptest! {
        #[test]
        fn what_is_added_is_read_again(
            measurement in "\\PC{1,8}",
            tag in "\\PC{0,8}",
            field in "\\PC{1,8}",
            value in any::<f64>(),
            time_ns in -9_000_000_000_000_000_000i64..9_000_000_000_000_000_000,
        ) {
            let mut lines = Lines::default();
            let added = lines.push(&measurement, [("tag", &*tag)], [(&*field, value)], time_ns);
            let text = lines.into_text();
            let options = ParseOptions { precision: Precision::Nanosecond, default_time_ns: 0 };
            let parsed = LineParser::new().parse(&text, &options);
            prop_assert_eq!(parsed.batch.rows.len(), usize::from(added.is_ok()));
            prop_assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
            if let Some(row) = parsed.batch.rows.first() {
                let key = SeriesKey::parse(parsed.batch.raw_key(row)).unwrap();
                prop_assert_eq!((&*key.measurement, key.tag("tag")), (&*measurement, &*tag));
                let layout = &parsed.batch.layouts[0].fields[0];
                prop_assert_eq!(&*layout.name, &*field);
                let bits = parsed.batch.row_values(row)[0];
                let read = Scalar::Float(f64::from_bits(bits));
                prop_assert_eq!((read, row.time_ns), (Scalar::Float(value), time_ns));
            }
        }
    }
}
