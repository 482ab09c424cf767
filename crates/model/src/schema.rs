//! Types and names of a measurement's columns.

use std::fmt;
use std::sync::Arc;

/// A measurement, tag key, field key or tag value. Always UTF-8; shared, never copied per row.
pub type Name = Arc<str>;

/// The type of a field's values. The numbers are written to disk: never change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FieldType {
    /// IEEE 754 binary64.
    Float = 0,
    /// Signed 64 bits.
    Integer = 1,
    /// Unsigned 64 bits.
    Unsigned = 2,
    /// UTF-8 text.
    String = 3,
    /// True or false.
    Boolean = 4,
}

impl FieldType {
    /// Every type, in order of precedence where one name has several (InfluxDB's order).
    pub const ALL: [Self; 5] =
        [Self::Float, Self::Integer, Self::Unsigned, Self::String, Self::Boolean];

    /// The type that `code` (as written to disk) stands for.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|t| *t as u8 == code)
    }

    /// The name InfluxDB gives the type in results and errors.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Integer => "integer",
            Self::Unsigned => "unsigned",
            Self::String => "string",
            Self::Boolean => "boolean",
        }
    }

    /// Whether arithmetic is possible.
    #[must_use]
    pub fn is_numeric(self) -> bool {
        matches!(self, Self::Float | Self::Integer | Self::Unsigned)
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is known of one measurement of one database, over all its retention policies.
///
/// An immutable snapshot: a field's type never changes while the measurement lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasurementSchema {
    /// Fields and their types, sorted by name.
    pub fields: Vec<(Name, FieldType)>,
    /// Tag keys that any series has, sorted.
    pub tag_keys: Vec<Name>,
}

impl MeasurementSchema {
    /// The type of field `name`, if there is such a field.
    #[must_use]
    pub fn field_type(&self, name: &str) -> Option<FieldType> {
        let at = self.fields.binary_search_by(|(n, _)| (**n).cmp(name)).ok()?;
        Some(self.fields[at].1)
    }

    /// Whether any series has the tag key `name`.
    #[must_use]
    pub fn has_tag(&self, name: &str) -> bool {
        self.tag_keys.binary_search_by(|n| (**n).cmp(name)).is_ok()
    }
}
