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
    let packed = Packed::choose(words, &stats, effort);
    let n_runs = stats.changes as usize + 1;
    let may_be_runs = effort != Effort::Fast
        && nesting < Nesting::Runs
        && n_runs <= values.len() / runs::RUN_LENGTH_MIN;
    let is_cold = effort == Effort::Cold;
    if is_cold
        && !may_be_runs
        && entropy::encode(words, worthwhile_len((packed.bits / 8) as usize), out)
    {
        return;
    }
    let start = out.len();
    packed.write(words, out);
    if may_be_runs {
        let mut candidate = Vec::new();
        runs::encode(words, n_runs, effort, &mut candidate);
        replace_if_smaller(out, start, &candidate);
        candidate.clear();
        if is_cold && entropy::encode(words, worthwhile_len(out.len() - start), &mut candidate) {
            out.truncate(start);
            out.extend_from_slice(&candidate);
        }
    }
}

/// What an entropy-coded page may take in place of one of `len` bytes: it is decoded several times slower than bits
/// are unpacked.
fn worthwhile_len(len: usize) -> usize {
    len * 19 / 20
}

fn replace_if_smaller(out: &mut Vec<u8>, start: usize, candidate: &[u8]) {
    if (candidate.len() as f64) < (out.len() - start) as f64 * 0.9 {
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

/// How integers are written if they are not entropy-coded.
enum Form {
    Raw,
    Values,
    Differences,
}

/// Frame of reference, differences or raw, and about the bits it takes, if the sample was like the rest.
struct Packed {
    form: Form,
    /// The plan that a sample made, and the one without exceptions.
    plan: Plan,
    whole: Plan,
    bits: u64,
}

impl Packed {
    fn choose(words: &[u64], stats: &stats::Stats, effort: Effort) -> Self {
        let n_deltas = words.len() - 1;
        let whole_for = Plan::whole(words.len(), stats.min, stats.max);
        let whole_delta = Plan::whole(n_deltas, stats.delta_min, stats.delta_max);
        let (plan_for, plan_delta) = match effort {
            Effort::Fast => (whole_for, whole_delta),
            Effort::Hot | Effort::Cold => {
                let mut sample = Vec::with_capacity(words.len().min(stats::SAMPLE));
                stats::sample(words.len(), |range| sample.extend_from_slice(&words[range]));
                let plan_for = Plan::cheapest(&sample, words.len(), stats.min, stats.max);
                sample.clear();
                stats::sample(n_deltas, |range| {
                    let from = sample.len();
                    sample.resize(from + range.len(), 0);
                    delta::differences(&words[range.start..=range.end], &mut sample[from..]);
                });
                let (min, max) = (stats.delta_min, stats.delta_max);
                (plan_for, Plan::cheapest(&sample, n_deltas, min, max))
            }
        };
        let n_restarts = words.len().div_ceil(delta::RESTART_ROWS) as u64;
        let first_len = uvarint_len(zigzag(words[0] as i64)) as u64;
        let restart_bits = 8 * (first_len + 2 * n_restarts - 2);
        let raw_bits = 64 * words.len() as u64;
        let delta_bits = plan_delta.bits + restart_bits;
        let (form, plan, whole, bits) = if delta_bits < plan_for.bits {
            (Form::Differences, plan_delta, whole_delta, delta_bits)
        } else {
            (Form::Values, plan_for, whole_for, plan_for.bits)
        };
        if bits + bits / 64 >= raw_bits {
            return Self { form: Form::Raw, plan, whole, bits: raw_bits };
        }
        Self { form, plan, whole, bits }
    }

    fn write(&self, words: &[u64], out: &mut Vec<u8>) {
        let write = match self.form {
            Form::Raw => return simple::encode_raw(words, out),
            Form::Values => simple::encode_for,
            Form::Differences => delta::encode,
        };
        // A page that turns out larger than without exceptions was judged by a bad sample.
        let bytes_max = (self.whole.bits / 8) as usize + 16;
        if !write(words, &self.plan, bytes_max, out) {
            let done = write(words, &self.whole, usize::MAX, out);
            assert!(done, "BUG: a page without a limit exceeded it");
        }
    }
}
