//! Types of columns, and how the servers store them.

use crate::error::Error;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// 8 bits, signed.
    Int8,
    /// 16 bits, signed.
    Int16,
    /// 32 bits, signed.
    Int32,
    /// 64 bits, signed.
    Int64,
    /// Text, UTF-8 by convention, at most 64 KiB.
    String,
    /// True or false.
    Bool,
    /// 32 bits IEEE 754.
    Float,
    /// 64 bits IEEE 754.
    Double,
    /// Bytes, at most 64 KiB.
    Binary,
    /// Microseconds since 1970-01-01 UTC, 64 bits signed.
    UnixtimeMicros,
    /// Scaled integer of at most 9 digits.
    Decimal32,
    /// Scaled integer of at most 18 digits.
    Decimal64,
    /// Scaled integer of at most 38 digits.
    Decimal128,
    /// Text of bounded length.
    Varchar,
    /// Days since 1970-01-01, 32 bits signed.
    Date,
}

const NUMBERS: &[(DataType, i32)] = &[
    (DataType::Int8, 1),
    (DataType::Int16, 3),
    (DataType::Int32, 5),
    (DataType::Int64, 7),
    (DataType::String, 8),
    (DataType::Bool, 9),
    (DataType::Float, 10),
    (DataType::Double, 11),
    (DataType::Binary, 12),
    (DataType::UnixtimeMicros, 13),
    (DataType::Decimal32, 15),
    (DataType::Decimal64, 16),
    (DataType::Decimal128, 17),
    (DataType::Varchar, 19),
    (DataType::Date, 20),
];

impl DataType {
    /// All types a column can have.
    pub fn all() -> impl Iterator<Item = Self> {
        NUMBERS.iter().map(|(data_type, _)| *data_type)
    }

    pub(crate) fn number(self) -> i32 {
        NUMBERS.iter().find(|(t, _)| *t == self).map_or(999, |(_, number)| *number)
    }

    pub(crate) fn from_number(number: i32) -> Option<Self> {
        NUMBERS.iter().find(|(_, n)| *n == number).map(|(data_type, _)| *data_type)
    }

    /// Bytes of a value of fixed width; `None`: the width varies.
    #[must_use]
    pub fn width(self) -> Option<usize> {
        Some(match self {
            Self::Int8 | Self::Bool => 1,
            Self::Int16 => 2,
            Self::Int32 | Self::Float | Self::Date | Self::Decimal32 => 4,
            Self::Int64 | Self::Double | Self::UnixtimeMicros | Self::Decimal64 => 8,
            Self::Decimal128 => 16,
            Self::String | Self::Binary | Self::Varchar => return None,
        })
    }

    /// Whether values are whole numbers inside (dates, times and decimals are).
    #[must_use]
    pub fn is_integer(self) -> bool {
        !matches!(self, Self::Bool | Self::Float | Self::Double) && self.width().is_some()
    }

    /// Whether a primary key may have such a column.
    #[must_use]
    pub fn may_be_key(self) -> bool {
        !matches!(self, Self::Bool | Self::Float | Self::Double)
    }
}

/// How a column's blocks are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// What the server takes for the type.
    #[default]
    Auto,
    /// As it is.
    Plain,
    /// Common prefixes of text are left out.
    Prefix,
    /// Runs of equal values.
    RunLength,
    /// Text through a dictionary.
    Dictionary,
    /// Bits transposed, then LZ4.
    BitShuffle,
}

/// How a column's blocks are compressed after encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// What the server takes by default: none.
    #[default]
    Default,
    /// None.
    None,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// zlib.
    Zlib,
}

const ENCODINGS: &[(Encoding, i32)] = &[
    (Encoding::Auto, 0),
    (Encoding::Plain, 1),
    (Encoding::Prefix, 2),
    (Encoding::RunLength, 4),
    (Encoding::Dictionary, 5),
    (Encoding::BitShuffle, 6),
];

const COMPRESSIONS: &[(Compression, i32)] = &[
    (Compression::Default, 0),
    (Compression::None, 1),
    (Compression::Snappy, 2),
    (Compression::Lz4, 3),
    (Compression::Zlib, 4),
];

impl Encoding {
    pub(crate) fn number(self) -> i32 {
        ENCODINGS.iter().find(|(e, _)| *e == self).map_or(0, |(_, number)| *number)
    }

    /// What a newer server has and this client does not know reads as the default.
    pub(crate) fn from_number(number: i32) -> Self {
        ENCODINGS.iter().find(|(_, n)| *n == number).map_or(Self::Auto, |(e, _)| *e)
    }
}

impl Compression {
    pub(crate) fn number(self) -> i32 {
        COMPRESSIONS.iter().find(|(c, _)| *c == self).map_or(0, |(_, number)| *number)
    }

    pub(crate) fn from_number(number: i32) -> Self {
        COMPRESSIONS.iter().find(|(_, n)| *n == number).map_or(Self::Default, |(c, _)| *c)
    }
}

pub(crate) fn known_type(number: i32, column: &str) -> Result<DataType, Error> {
    DataType::from_number(number).ok_or_else(|| {
        Error::invalid(format!(
            "column {column} has type {number}, which this client does not know"
        ))
    })
}
