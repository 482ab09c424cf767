//! Loops over decoded slices: sums, extremes, comparisons, selections, transposition.
//!
//! Bitmaps are 64-bit words, least significant bit first, of exactly as many words as the values
//! need; bits past the end are zero in every result and are ignored in every argument.
//!
//! Not here: anything that knows of columns, NULL or time. Each kernel has a one-line reference in
//! the tests, and every instruction set must give the same bits.

mod bitmap;
mod compare;
mod divide;
mod extremes;
mod interleaved;
mod select;
mod spread;
mod sum;
mod transpose;

#[cfg(test)]
mod tests;

pub use bitmap::{
    and_not_words, and_words, append_bits, copy_bits, count_ones, count_ones_prefix, not_words,
    or_words, set_bit_range, set_bits,
};
pub use compare::{
    Comparison, compare_f64, compare_i64, compare_pairs_f64, compare_pairs_i64, compare_pairs_u64,
    compare_u64,
};
pub use divide::{STEPS_REACH_MAX, steps_of_i64};
pub use extremes::{
    MinMax, min_max_f64, min_max_f64_masked, min_max_i64, min_max_i64_masked, min_max_u64,
    min_max_u64_masked,
};
pub use interleaved::{
    max_interleaved_f64, max_interleaved_i64, max_interleaved_u64, min_interleaved_f64,
    min_interleaved_i64, min_interleaved_u64, sum_interleaved_f64, sum_interleaved_i64,
    sum_interleaved_u64,
};
pub use select::{filter_f64, filter_i64, filter_u64, gather_f64, gather_i64, gather_u64};
pub use spread::{filter_bits, spread_f64, spread_i64, spread_u64};
pub use sum::{
    prefix_sum_i64, sum_f64, sum_f64_masked, sum_i64, sum_i64_masked, sum_u64, sum_u64_masked,
};
pub use transpose::transpose_u64;
