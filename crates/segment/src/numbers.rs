//! Minimum, maximum and sum of a page's or span's values, kept as eight bytes each.
//!
//! The bytes are the value's own (two's complement or IEEE 754). Sums of integers wrap; floats are
//! added in no particular order. Floats with
//! a NaN among them have no such numbers: what a NaN means to an aggregate is not decided here.

use codec::kernels;
use model::{FieldType, Scalar};

/// Bit patterns of minimum, maximum and sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) sum: u64,
}

/// The scalar that `bits` stand for. `None` for strings.
pub(crate) fn scalar(field_type: FieldType, bits: u64) -> Option<Scalar> {
    match field_type {
        FieldType::Float => Some(Scalar::Float(f64::from_bits(bits))),
        FieldType::Integer => Some(Scalar::Integer(bits as i64)),
        FieldType::Unsigned => Some(Scalar::Unsigned(bits)),
        FieldType::Boolean => Some(Scalar::Boolean(bits != 0)),
        FieldType::String => None,
    }
}

/// Values that can be summed up.
pub(crate) trait Number: Copy {
    /// `None` if there are no values, or a NaN is among them.
    fn numbers(values: &[Self]) -> Option<Numbers>;

    /// Adds the values whose bit is set to `out`.
    fn select(values: &[Self], bits: &[u64], out: &mut Vec<Self>);
}

impl Number for i64 {
    fn numbers(values: &[Self]) -> Option<Numbers> {
        let found = kernels::min_max_i64(values)?;
        let sum = kernels::sum_i64(values);
        Some(Numbers { min: found.min as u64, max: found.max as u64, sum: sum as u64 })
    }

    fn select(values: &[Self], bits: &[u64], out: &mut Vec<Self>) {
        kernels::filter_i64(values, bits, out);
    }
}

impl Number for u64 {
    fn numbers(values: &[Self]) -> Option<Numbers> {
        let found = kernels::min_max_u64(values)?;
        Some(Numbers { min: found.min, max: found.max, sum: kernels::sum_u64(values) })
    }

    fn select(values: &[Self], bits: &[u64], out: &mut Vec<Self>) {
        kernels::filter_u64(values, bits, out);
    }
}

impl Number for f64 {
    fn numbers(values: &[Self]) -> Option<Numbers> {
        // Without a branch a value.
        if values.iter().fold(false, |any, value| any | value.is_nan()) {
            return None;
        }
        let found = kernels::min_max_f64(values)?;
        let sum = kernels::sum_f64(values);
        let [min, max, sum] = [found.min, found.max, sum].map(Self::to_bits);
        Some(Numbers { min, max, sum })
    }

    fn select(values: &[Self], bits: &[u64], out: &mut Vec<Self>) {
        kernels::filter_f64(values, bits, out);
    }
}
