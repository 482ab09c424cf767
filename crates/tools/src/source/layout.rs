//! How the rows of a measurement look, and where values go whose field has several types.
//!
//! InfluxDB fixes a field's type per shard, Nyala per measurement. Where a field has several types,
//! its first one in the order float, integer, unsigned, string, boolean keeps the name, numbers that
//! fit it go along, and everything else goes to a field called after its type (`v_string`). Answers
//! do not say which type a number has: one that may be a float is taken for one.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, bail};

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FieldType {
    Float,
    Integer,
    Unsigned,
    String,
    Boolean,
}

impl FieldType {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Ok(match text {
            "float" => Self::Float,
            "integer" => Self::Integer,
            "unsigned" => Self::Unsigned,
            "string" => Self::String,
            "boolean" => Self::Boolean,
            _ => bail!("unknown type of a field: {text}"),
        })
    }

    fn is_number(self) -> bool {
        matches!(self, Self::Float | Self::Integer | Self::Unsigned)
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Float => "float",
            Self::Integer => "integer",
            Self::Unsigned => "unsigned",
            Self::String => "string",
            Self::Boolean => "boolean",
        })
    }
}

/// A value as JSON shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// Its digits.
    Number(&'a str),
    Text(&'a str),
    Boolean(bool),
}

/// A field of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    /// In order of precedence, at least one.
    types: Vec<FieldType>,
    /// The names that values of the types get, in the same order.
    names: Vec<String>,
}

/// A measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) measurement: String,
    pub(crate) tags: Vec<String>,
    fields: BTreeMap<String, Field>,
}

impl Layout {
    pub(crate) fn new(
        measurement: String,
        tags: Vec<String>,
        fields: BTreeMap<String, Vec<FieldType>>,
    ) -> Self {
        let mut taken: Vec<String> = fields.keys().cloned().collect();
        let mut named = BTreeMap::new();
        for (key, mut types) in fields {
            types.sort_unstable();
            types.dedup();
            let mut names = vec![key.clone()];
            for kind in types.iter().skip(1) {
                let mut name = format!("{key}_{kind}");
                while taken.contains(&name) {
                    name.push('_');
                }
                taken.push(name.clone());
                names.push(name);
            }
            named.insert(key, Field { types, names });
        }
        Self { measurement, tags, fields: named }
    }

    /// Fields of several types, with the names that their values get.
    pub(crate) fn mixed(&self) -> impl Iterator<Item = (&str, String)> {
        self.fields.iter().filter(|(_, field)| field.types.len() > 1).map(|(key, field)| {
            let kinds: Vec<String> = field
                .types
                .iter()
                .zip(&field.names)
                .map(|(t, n)| format!("{t} as {n:?}"))
                .collect();
            (key.as_str(), kinds.join(", "))
        })
    }

    /// Every field as it is written, with its type.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&str, FieldType)> {
        self.fields.values().flat_map(|field| {
            field.names.iter().map(String::as_str).zip(field.types.iter().copied())
        })
    }

    /// Names that values of a field may have been written under.
    pub(crate) fn names_of(&self, field: &str) -> &[String] {
        self.fields.get(field).map_or(&[], |field| &field.names)
    }

    /// The name and the type that a value is written with.
    ///
    /// # Errors
    /// The field is not known with such a type: it came after the fields were asked for.
    pub(crate) fn place<'l>(
        &'l self,
        field: &str,
        value: Value<'_>,
    ) -> Result<(&'l str, FieldType)> {
        let Some(found) = self.fields.get(field) else {
            bail!("field {field:?} of {:?} was added meanwhile: start again", self.measurement)
        };
        let position = |kind: FieldType| found.types.iter().position(|other| *other == kind);
        let fits = |kind: FieldType| match value {
            Value::Text(_) => kind == FieldType::String,
            Value::Boolean(_) => kind == FieldType::Boolean,
            Value::Number(digits) => {
                kind.is_number() && (found.types.len() == 1 || number_fits(kind, digits))
            }
        };
        // Whatever its digits, a number is not lost where there is a field of floats.
        let any_float =
            || matches!(value, Value::Number(_)).then_some(FieldType::Float).and_then(position);
        match found.types.iter().position(|kind| fits(*kind)).or_else(any_float) {
            Some(at) => Ok((&found.names[at], found.types[at])),
            None => bail!(
                "field {field:?} of {:?} has a value of another type than those it is said to \
                 have ({:?}): {value:?}",
                self.measurement,
                found.types
            ),
        }
    }
}

/// Whether a number keeps its value in this type.
fn number_fits(kind: FieldType, digits: &str) -> bool {
    match kind {
        FieldType::Float => match (digits.parse::<i128>(), digits.parse::<f64>()) {
            // InfluxDB writes a whole float with as many digits as tell it from others, and zeros.
            (Ok(whole), Ok(float)) => float as i128 == whole || float.to_string() == digits,
            _ => true,
        },
        FieldType::Integer => digits.parse::<i64>().is_ok(),
        FieldType::Unsigned => digits.parse::<u64>().is_ok(),
        FieldType::String | FieldType::Boolean => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FieldType::{Boolean, Float, Integer, String as Text, Unsigned};

    fn layout(types: &[FieldType], others: &[&str]) -> Layout {
        let mut fields = BTreeMap::from([("v".to_owned(), types.to_vec())]);
        fields.extend(others.iter().map(|name| ((*name).to_owned(), vec![Float])));
        Layout::new("m".to_owned(), Vec::new(), fields)
    }

    #[test]
    fn one_type() {
        let layout = layout(&[Float], &[]);
        assert_eq!(layout.place("v", Value::Number("9007199254740993")).unwrap(), ("v", Float));
        assert!(layout.place("v", Value::Text("x")).is_err());
        assert!(layout.place("w", Value::Text("x")).is_err());
        assert_eq!(layout.mixed().count(), 0);
    }

    #[test]
    fn several_types() {
        let layout = layout(&[Text, Integer, Float, Boolean], &["v_string"]);
        let padded = [60, 63, 69].map(|power| 2f64.powi(power).to_string());
        let place = |value| layout.place("v", value).unwrap();
        assert_eq!(place(Value::Number("1.5")), ("v", Float));
        assert_eq!(place(Value::Number("9007199254740992")), ("v", Float));
        assert_eq!(place(Value::Number("9007199254740993")), ("v_integer", Integer));
        assert_eq!(place(Value::Number("9223372036854775807")), ("v_integer", Integer));
        assert_eq!(place(Value::Number("1e+30")), ("v", Float));
        for digits in &padded {
            assert!(digits.ends_with("000"), "{digits}");
            assert_eq!(place(Value::Number(digits)), ("v", Float));
        }
        // Of no type exactly: too long for an integer.
        assert_eq!(place(Value::Number("1180591620717411303425")), ("v", Float));
        assert_eq!(place(Value::Text("a")), ("v_string_", Text));
        assert_eq!(place(Value::Boolean(true)), ("v_boolean", Boolean));
        assert_eq!(layout.names_of("v").len(), 4);
        let mixed: Vec<_> = layout.mixed().map(|(field, _)| field).collect();
        assert_eq!(mixed, ["v"]);
    }

    #[test]
    fn whole_numbers_of_two_types() {
        let layout = layout(&[Integer, Unsigned], &[]);
        let max = "18446744073709551615";
        assert_eq!(layout.place("v", Value::Number(max)).unwrap(), ("v_unsigned", Unsigned));
        assert_eq!(layout.place("v", Value::Number("-1")).unwrap(), ("v", Integer));
    }
}
