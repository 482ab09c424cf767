//! Columns in which the rows of a series are apart from their first one.
//!
//! Values of a series are near each other, those of two series are not. Where a request has a few rows
//! of each series, a column becomes two pages: the values of first rows, and the differences of all
//! others from the row before of their series, wherever that stands. Each is as wide as what it holds.

use codec::Effort;

use crate::bytes::{PutBytes, Reader};

/// How the rows of a column are linked.
#[derive(Debug, Default)]
pub(super) struct Apart {
    /// Rows that stand for themselves.
    first: Vec<u32>,
    /// The others, and what they are differences from.
    rest: Vec<(u32, u32)>,
}

impl Apart {
    /// Adds the next row of the column, a difference from an earlier one or not; gives its place.
    pub(super) fn push(&mut self, before: Option<u32>) -> u32 {
        let at = self.rows() as u32;
        match before {
            None => self.first.push(at),
            Some(before) => self.rest.push((at, before)),
        }
        at
    }

    /// What a column has in the rows that stand for themselves.
    pub(super) fn first_of(&self, values: &[u64]) -> Vec<u64> {
        self.first.iter().map(|at| values[*at as usize]).collect()
    }

    fn rows(&self) -> usize {
        self.first.len() + self.rest.len()
    }
}

/// How all columns of a record are linked.
#[derive(Debug)]
pub(super) struct Linked {
    /// Those of all rows: times.
    pub(super) all: Apart,
    /// Those of the rows of each layout: values.
    pub(super) of_layout: Vec<Apart>,
}

impl Linked {
    /// Of rows with these layouts, of which each is linked to the one so many rows before it; 0: to
    /// none. `None` if there is no such row or layout.
    pub(super) fn new(layout_of: &[u64], layouts: usize, back: &[u64]) -> Option<Self> {
        let mut all = Apart::default();
        let mut of_layout: Vec<Apart> = (0..layouts).map(|_| Apart::default()).collect();
        // Where each row is in the columns of its layout.
        let mut places = Vec::with_capacity(back.len());
        for (at, (layout, back)) in layout_of.iter().zip(back).enumerate() {
            let before = match usize::try_from(*back).ok()? {
                0 => None,
                back => Some(at.checked_sub(back)?),
            };
            all.push(before.map(|before| before as u32));
            let before = before.filter(|before| layout_of[*before] == *layout);
            let columns = of_layout.get_mut(usize::try_from(*layout).ok()?)?;
            places.push(columns.push(before.map(|before| places[before])));
        }
        Some(Self { all, of_layout })
    }

    /// The series of every row, from a page of those of first rows; `None` if it is malformed.
    pub(super) fn series(&self, back: &[u64], page: &[u8]) -> Option<Vec<u64>> {
        let mut first = Vec::new();
        codec::decode_u64(page, self.all.first.len(), &mut first).ok()?;
        let mut first = first.into_iter();
        let mut series: Vec<u64> = Vec::with_capacity(back.len());
        for (at, back) in back.iter().enumerate() {
            series.push(if *back == 0 { first.next()? } else { series[at - *back as usize] });
        }
        Some(series)
    }
}

/// Adds a column of integers (unsigned ones by their bits): apart, or whole where differences are not
/// smaller than the values themselves.
pub(super) fn encode(values: &[u64], apart: &Apart, out: &mut Vec<u8>) {
    assert_eq!(values.len(), apart.rows(), "BUG: links of another column");
    let first = apart.first_of(values);
    let difference =
        |(at, before): &(u32, u32)| values[*at as usize].wrapping_sub(values[*before as usize]);
    let rest: Vec<u64> = apart.rest.iter().map(difference).collect();
    let mut page = Vec::with_capacity(values.len() + 16);
    codec::encode_u64(&first, Effort::Hot, &mut page);
    let first_len = page.len();
    codec::encode_u64(&rest, Effort::Hot, &mut page);
    if page.len() <= packed_len(values) {
        out.put_varint(first_len as u64);
        out.extend_from_slice(&page);
    } else {
        out.put_varint(0);
        codec::encode_u64(values, Effort::Hot, out);
    }
}

/// Bytes of the values as they are, each as wide as their span asks for.
fn packed_len(values: &[u64]) -> usize {
    let signed = || values.iter().map(|value| *value as i64);
    let (min, max) = (signed().min().unwrap_or(0), signed().max().unwrap_or(0));
    let bits = u64::BITS - (max.wrapping_sub(min) as u64).leading_zeros();
    (values.len() * bits as usize).div_ceil(8)
}

/// Reads the column of a block that [`encode`] wrote; `None` if it is malformed.
pub(super) fn decode(block: &[u8], apart: &Apart) -> Option<Vec<u64>> {
    let mut reader = Reader::new(block, "column of a record");
    let first_len = reader.count(1).ok()?;
    let mut values = Vec::new();
    if first_len == 0 {
        codec::decode_u64(reader.rest(), apart.rows(), &mut values).ok()?;
        return Some(values);
    }
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    codec::decode_u64(reader.take(first_len).ok()?, apart.first.len(), &mut first).ok()?;
    codec::decode_u64(reader.rest(), apart.rest.len(), &mut rest).ok()?;
    values.resize(apart.rows(), 0);
    for (at, value) in apart.first.iter().zip(first) {
        values[*at as usize] = value;
    }
    // In the order of rows: what a row is a difference from is there already.
    for ((at, before), difference) in apart.rest.iter().zip(rest) {
        values[*at as usize] = values[*before as usize].wrapping_add(difference);
    }
    Some(values)
}

/// Adds a column of floats: as integers if all are decimals, whole otherwise.
pub(super) fn encode_floats(values: &[f64], apart: &Apart, out: &mut Vec<u8>) {
    if let Some((digits, integers)) = codec::to_decimals(values) {
        out.put_u8(digits + 1);
        let integers: Vec<u64> = integers.into_iter().map(|integer| integer as u64).collect();
        encode(&integers, apart, out);
    } else {
        out.put_u8(0);
        codec::encode_f64(values, Effort::Hot, out);
    }
}

/// Reads the bit patterns of the column of a block that [`encode_floats`] wrote; `None` if it is
/// malformed.
pub(super) fn decode_floats(block: &[u8], apart: &Apart) -> Option<Vec<u64>> {
    let (first, rest) = block.split_first()?;
    if let Some(digits) = first.checked_sub(1) {
        let mut values = decode(rest, apart)?;
        codec::from_decimals(digits, &mut values).ok()?;
        return Some(values);
    }
    let mut values = Vec::new();
    codec::decode_f64(rest, apart.rows(), &mut values).ok()?;
    Some(values.into_iter().map(f64::to_bits).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rows, each linked to the one so many rows before it, if there is one.
    fn linked(back: impl IntoIterator<Item = usize>) -> Apart {
        let mut apart = Apart::default();
        for (at, back) in back.into_iter().enumerate() {
            let before = at.checked_sub(back).filter(|before| *before < at);
            apart.push(before.map(|before| before as u32));
        }
        apart
    }

    proptest! {
        #[test]
        fn columns_come_back(rows in prop::collection::vec((any::<u64>(), 0usize..20), 0..300), shift in 0u32..64) {
            let values: Vec<u64> = rows.iter().map(|row| row.0 >> shift).collect();
            let apart = linked(rows.iter().map(|row| row.1));
            let mut bytes = Vec::new();
            encode(&values, &apart, &mut bytes);
            prop_assert_eq!(decode(&bytes, &apart).unwrap(), values);
        }

        #[test]
        fn floats_come_back(
            rows in prop::collection::vec((-99_999i64..99_999, 0usize..20, any::<u64>()), 0..300),
            digits in 0i32..10,
            strays: bool,
        ) {
            let value = |row: &(i64, usize, u64)| match strays && row.2.is_multiple_of(16) {
                true => f64::from_bits(row.2),
                false => row.0 as f64 / 10f64.powi(digits),
            };
            let values: Vec<f64> = rows.iter().map(value).collect();
            let apart = linked(rows.iter().map(|row| row.1));
            let mut bytes = Vec::new();
            encode_floats(&values, &apart, &mut bytes);
            let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
            prop_assert_eq!(decode_floats(&bytes, &apart).unwrap(), bits);
        }

        #[test]
        fn damage_is_refused_or_read_but_never_panics(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            back in prop::collection::vec(0usize..9, 0..60),
        ) {
            let apart = linked(back);
            let _ = decode(&bytes, &apart);
            let _ = decode_floats(&bytes, &apart);
        }
    }

    /// Numbers below a bound that have nothing to do with each other (Knuth's MMIX generator).
    fn random() -> impl FnMut(u64) -> u64 {
        let mut state = 7u64;
        move |below| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        }
    }

    /// Gauges that wander, all hosts in turn, two or three rows of each.
    #[test]
    fn few_rows_a_series_take_little_more_than_their_differences() {
        let mut random = random();
        let mut values: Vec<u64> = (0..4000).map(|_| random(100) + 100).collect();
        for at in 4000..10_000 {
            values.push(values[at - 4000] + 2 - random(5));
        }
        let (mut apart, mut whole) = (Vec::new(), Vec::new());
        encode(&values, &linked(std::iter::repeat_n(4000, 10_000)), &mut apart);
        codec::encode_u64(&values, Effort::Hot, &mut whole);
        // 4000 values of 7 bits, 6000 of 3.
        assert!(apart.len() < 5_900, "{} bytes", apart.len());
        assert!(whole.len() > 8_500, "{} bytes", whole.len());
    }

    #[test]
    fn values_that_have_nothing_to_do_with_each_other_stay_whole() {
        let mut random = random();
        let values: Vec<u64> = (0..1000).map(|_| random(1024)).collect();
        let column = linked((0..1000).map(|at| at % 3));
        let (mut bytes, mut whole) = (Vec::new(), Vec::new());
        encode(&values, &column, &mut bytes);
        codec::encode_u64(&values, Effort::Hot, &mut whole);
        assert_eq!(bytes.len(), 1 + whole.len());
    }
}
