//! Which encoding a page of integers gets: the cheapest by statistics and a sample.

use super::{Nesting, as_u64, delta, runs, scale, simple, stats};
use crate::{
    PAGE_COUNT_MAX,
    bitpack::bits_of,
    encoding::Effort,
    entropy,
    patched::Plan,
    wire::{uvarint_len, zigzag},
};

/// Appends `values` as one page that may appear at `nesting`.
pub(crate) fn encode_page(values: &[i64], effort: Effort, nesting: Nesting, out: &mut Vec<u8>) {
    assert!(values.len() <= PAGE_COUNT_MAX, "BUG: a page of {} values", values.len());
    let words = as_u64(values);
    let [first, second, ..] = values else {
        match values.first() {
            None => simple::encode_raw(&[], out),
            Some(value) => simple::encode_constant(*value, out),
        }
        return;
    };
    let stats = stats::gather(values);
    if stats.min == stats.max {
        return simple::encode_constant(stats.min, out);
    }
    if stats.delta_min == stats.delta_max
        && regular_len(*first, stats.delta_min) <= 1 + 8 * values.len()
    {
        return simple::encode_regular(*first, second.wrapping_sub(*first), out);
    }
    if nesting == Nesting::Top
        && let Some(divisor) = worthwhile_divisor(words, &stats, effort)
    {
        return scale::encode(words, stats.min as u64, divisor, effort, out);
    }
    let start = out.len();
    encode_packed(words, &stats, effort, out);
    if effort == Effort::Fast {
        return;
    }
    let n_runs = stats.changes as usize + 1;
    if nesting < Nesting::Runs && n_runs <= values.len() / runs::RUN_LENGTH_MIN {
        let mut candidate = Vec::new();
        runs::encode(words, n_runs, effort, &mut candidate);
        replace_if_smaller(out, start, &candidate, 0.9);
    }
    if effort == Effort::Cold {
        let mut candidate = Vec::new();
        // Entropy coding decodes several times slower than bit packing.
        let bytes_max = (out.len() - start) * 19 / 20;
        if entropy::encode(words, bytes_max, &mut candidate) {
            replace_if_smaller(out, start, &candidate, 0.95);
        }
    }
}

fn replace_if_smaller(out: &mut Vec<u8>, start: usize, candidate: &[u8], factor: f64) {
    if (candidate.len() as f64) < (out.len() - start) as f64 * factor {
        out.truncate(start);
        out.extend_from_slice(candidate);
    }
}

fn regular_len(start: i64, step: i64) -> usize {
    1 + uvarint_len(zigzag(start)) + uvarint_len(zigzag(step))
}

/// The common divisor of the page's values when dividing by it pays.
fn worthwhile_divisor(words: &[u64], stats: &stats::Stats, effort: Effort) -> Option<u64> {
    let range_bits = bits_of(stats.max.wrapping_sub(stats.min) as u64);
    let divisor_min = match effort {
        // Only clock grids are worth the pass over the values.
        Effort::Fast if range_bits <= 16 => return None,
        Effort::Fast => 256,
        Effort::Hot | Effort::Cold => 2,
    };
    let divisor = scale::common_divisor(words, stats.min as u64, divisor_min);
    // A divisor of the values divides the differences too: either way it saves these bits a value.
    let saved_bits = words.len() as u64 * u64::from(divisor.ilog2());
    let header = 3 + uvarint_len(divisor) + uvarint_len(zigzag(stats.min));
    let header_bits = 8 * header as u64;
    (divisor >= divisor_min && saved_bits > header_bits).then_some(divisor)
}

/// Frame of reference, differences or raw.
fn encode_packed(words: &[u64], stats: &stats::Stats, effort: Effort, out: &mut Vec<u8>) {
    let whole_for = Plan::whole(words.len(), stats.min, stats.max);
    let whole_delta = Plan::whole(words.len() - 1, stats.delta_min, stats.delta_max);
    let (plan_for, plan_delta) = match effort {
        Effort::Fast => (whole_for, whole_delta),
        Effort::Hot | Effort::Cold => {
            let mut sample = Vec::with_capacity(words.len().min(stats::SAMPLE));
            stats::sample(words.len(), |range| sample.extend_from_slice(&words[range]));
            let plan_for = Plan::cheapest(&sample, words.len(), stats.min, stats.max);
            sample.clear();
            stats::sample(words.len() - 1, |range| {
                let from = sample.len();
                sample.resize(from + range.len(), 0);
                delta::differences(&words[range.start..=range.end], &mut sample[from..]);
            });
            let n_deltas = words.len() - 1;
            (plan_for, Plan::cheapest(&sample, n_deltas, stats.delta_min, stats.delta_max))
        }
    };
    let n_restarts = words.len().div_ceil(delta::RESTART_ROWS) as u64;
    let delta_extra = 8 * (uvarint_len(zigzag(words[0] as i64)) as u64 + 2 * n_restarts - 2);
    let raw_bits = 64 * words.len() as u64;
    let use_delta = plan_delta.bits + delta_extra < plan_for.bits;
    let (plan, whole) = if use_delta { (plan_delta, whole_delta) } else { (plan_for, whole_for) };
    let bits = plan.bits + if use_delta { delta_extra } else { 0 };
    if bits + bits / 64 >= raw_bits {
        return simple::encode_raw(words, out);
    }
    let write = if use_delta { delta::encode } else { simple::encode_for };
    // A page that turns out larger than without exceptions was judged by a bad sample.
    let bytes_max = (whole.bits / 8) as usize + 16;
    if !write(words, &plan, bytes_max, out) {
        let done = write(words, &whole, usize::MAX, out);
        assert!(done, "BUG: a page without a limit exceeded it");
    }
}
