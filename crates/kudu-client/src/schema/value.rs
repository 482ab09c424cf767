//! Single values: bounds, predicates, defaults. Rows travel in columns instead.

use std::cmp::Ordering;

use super::DataType;
use crate::error::Error;

/// A value of a column. Integers, dates, times and decimals (unscaled) are all [`Value::Int`]; the
/// column's type says how wide they are.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// For `Bool`.
    Bool(bool),
    /// For everything with whole numbers inside.
    Int(i128),
    /// For `Float`.
    Float(f32),
    /// For `Double`.
    Double(f64),
    /// For `String`, `Varchar` and `Binary`.
    Bytes(Vec<u8>),
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value.into())
    }
}

impl From<i128> for Value {
    fn from(value: i128) -> Self {
        Self::Int(value)
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Self {
        Self::Float(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Bytes(value.as_bytes().to_vec())
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Self {
        Self::Bytes(value.to_vec())
    }
}

impl Value {
    /// Checks that a column of type `data_type` can hold this.
    pub(crate) fn check(&self, data_type: DataType, column: &str) -> Result<(), Error> {
        let fits = match self {
            Self::Bool(_) => data_type == DataType::Bool,
            Self::Float(v) => data_type == DataType::Float && !v.is_nan(),
            Self::Double(v) => data_type == DataType::Double && !v.is_nan(),
            Self::Bytes(_) => data_type.width().is_none(),
            Self::Int(v) => data_type.is_integer() && (min(data_type)..=max(data_type)).contains(v),
        };
        if fits {
            return Ok(());
        }
        Err(Error::invalid(format!("{self:?} is no value for column {column} ({data_type:?})")))
    }

    /// The bytes of the value in rows and predicates: little-endian in the type's width.
    pub(crate) fn wire(&self, data_type: DataType) -> Vec<u8> {
        match self {
            Self::Bool(v) => vec![u8::from(*v)],
            Self::Int(v) => {
                let width = data_type.width().unwrap_or(16);
                v.to_le_bytes().into_iter().take(width).collect()
            }
            Self::Float(v) => v.to_le_bytes().to_vec(),
            Self::Double(v) => v.to_le_bytes().to_vec(),
            Self::Bytes(v) => v.clone(),
        }
    }

    /// Reads what [`Value::wire`] writes; `None` if the length is wrong.
    pub(crate) fn from_wire(bytes: &[u8], data_type: DataType) -> Option<Self> {
        let Some(width) = data_type.width() else { return Some(Self::Bytes(bytes.to_vec())) };
        if bytes.len() != width {
            return None;
        }
        Some(match data_type {
            DataType::Bool => Self::Bool(bytes != [0]),
            DataType::Float => Self::Float(f32::from_le_bytes(bytes.try_into().ok()?)),
            DataType::Double => Self::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
            _ => {
                let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
                let mut wide = [if negative { 0xff } else { 0 }; 16];
                wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                Self::Int(i128::from_le_bytes(wide))
            }
        })
    }

    /// Order of values of one column.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            // Values are checked against the column's type before they are compared.
            _ => Ordering::Equal,
        }
    }

    /// The least value greater than this one; `None`: there is none.
    pub(crate) fn successor(&self, data_type: DataType) -> Option<Self> {
        Some(match self {
            Self::Bool(v) => Self::Bool(if *v { return None } else { true }),
            Self::Int(v) if *v < max(data_type) => Self::Int(v + 1),
            Self::Int(_) => return None,
            Self::Float(v) if *v == f32::INFINITY => return None,
            Self::Float(v) => Self::Float(v.next_up()),
            Self::Double(v) if *v == f64::INFINITY => return None,
            Self::Double(v) => Self::Double(v.next_up()),
            Self::Bytes(v) => {
                let mut longer = v.clone();
                longer.push(0);
                Self::Bytes(longer)
            }
        })
    }

    /// The least value of a type that may be in a key.
    pub(crate) fn least(data_type: DataType) -> Self {
        if data_type.width().is_none() {
            Self::Bytes(Vec::new())
        } else {
            Self::Int(min(data_type))
        }
    }
}

fn bits(data_type: DataType) -> u32 {
    data_type.width().unwrap_or(16) as u32 * 8
}

fn max(data_type: DataType) -> i128 {
    i128::MAX >> (128 - bits(data_type))
}

fn min(data_type: DataType) -> i128 {
    i128::MIN >> (128 - bits(data_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_their_width() {
        assert!(Value::from(127).check(DataType::Int8, "c").is_ok());
        assert!(Value::from(128).check(DataType::Int8, "c").is_err());
        assert!(Value::from(-129).check(DataType::Int8, "c").is_err());
        assert!(Value::Int(i128::MIN).check(DataType::Decimal128, "c").is_ok());
        assert!(Value::from(1).check(DataType::Bool, "c").is_err());
        assert!(Value::from(f64::NAN).check(DataType::Double, "c").is_err());
        for value in [-1, 0, 1, i64::MIN, i64::MAX] {
            let wire = Value::from(value).wire(DataType::Int64);
            assert_eq!(Value::from_wire(&wire, DataType::Int64), Some(Value::from(value)));
        }
        assert_eq!(Value::from_wire(&[1, 2], DataType::Int32), None);
    }

    #[test]
    fn successors_are_next() {
        assert_eq!(Value::from(7).successor(DataType::Int32), Some(Value::from(8)));
        assert_eq!(Value::from(i32::MAX).successor(DataType::Int32), None);
        assert_eq!(Value::from("a").successor(DataType::String), Some(Value::from("a\0")));
        assert_eq!(Value::from(f64::INFINITY).successor(DataType::Double), None);
        assert_eq!(Value::from(-0.0).successor(DataType::Double), Some(Value::Double(5e-324)));
    }
}
