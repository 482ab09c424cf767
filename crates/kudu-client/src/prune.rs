//! Which partition keys a scan has to visit, given what it knows of the columns.

use crate::predicate::{Test, Tests};
use crate::schema::{DataType, HashDimension, PartitionSchema, Schema, Value, key};

/// Combinations of listed values that are hashed; beyond, all buckets are visited.
const COMBINATIONS_MAX: usize = 100_000;

/// Partition keys from `lower` (inclusive) to `upper` (exclusive; empty: no bound).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyRange {
    pub(crate) lower: Vec<u8>,
    pub(crate) upper: Vec<u8>,
}

impl KeyRange {
    fn is_empty(&self) -> bool {
        !self.upper.is_empty() && self.lower >= self.upper
    }
}

/// The ranges to visit, ascending and disjoint. Empty: no row can satisfy the tests.
pub(crate) fn prune(schema: &Schema, partition: &PartitionSchema, tests: &Tests) -> Vec<KeyRange> {
    if tests.iter().any(|(_, test)| *test == Test::Nothing) {
        return Vec::new();
    }
    let lower = lower_key(schema, partition, tests);
    let upper = upper_key(schema, partition, tests);
    let mut ranges = Vec::new();
    for (piece, dimensions) in pieces(partition, &KeyRange { lower, upper }) {
        expand(schema, &piece, dimensions, tests, &mut ranges);
    }
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable();
    ranges
}

/// The parts of `ranges` within a bucket of the first hash dimension.
pub(crate) fn within_bucket(ranges: Vec<KeyRange>, bucket: u32) -> Vec<KeyRange> {
    let start = bucket.to_be_bytes().to_vec();
    let end = bucket.checked_add(1).map_or_else(Vec::new, |next| next.to_be_bytes().to_vec());
    let cut = |range: KeyRange| {
        let upper = match (range.upper.is_empty(), end.is_empty()) {
            (true, _) => end.clone(),
            (_, true) => range.upper,
            _ => range.upper.min(end.clone()),
        };
        KeyRange { lower: range.lower.max(start.clone()), upper }
    };
    ranges.into_iter().map(cut).filter(|range| !range.is_empty()).collect()
}

fn test_on(tests: &Tests, column: usize) -> Option<&Test> {
    tests.iter().find(|(i, _)| *i == column).map(|(_, test)| test)
}

fn data_type(schema: &Schema, column: usize) -> DataType {
    schema.columns().get(column).map_or(DataType::Binary, |c| c.data_type)
}

fn lower_key(schema: &Schema, partition: &PartitionSchema, tests: &Tests) -> Vec<u8> {
    let mut values = Vec::new();
    for column in &partition.range {
        let value = match test_on(tests, *column) {
            Some(Test::Equal(value) | Test::Range { lower: Some(value), .. }) => value,
            Some(Test::In(list)) => match list.first() {
                Some(value) => value,
                None => break,
            },
            _ => break,
        };
        values.push((value.clone(), data_type(schema, *column)));
    }
    range_key(schema, partition, values)
}

fn upper_key(schema: &Schema, partition: &PartitionSchema, tests: &Tests) -> Vec<u8> {
    let mut values = Vec::new();
    let mut inclusive = false;
    for column in &partition.range {
        let value = match test_on(tests, *column) {
            Some(Test::Equal(value)) => Some(value),
            Some(Test::In(list)) => list.last(),
            Some(Test::Range { upper: Some(value), .. }) => {
                values.push((value.clone(), data_type(schema, *column)));
                inclusive = false;
                None
            }
            _ => None,
        };
        let Some(value) = value else { break };
        values.push((value.clone(), data_type(schema, *column)));
        inclusive = true;
    }
    if inclusive && !increment(&mut values) {
        return Vec::new();
    }
    range_key(schema, partition, values)
}

/// The next larger combination; `false`: there is none.
pub(crate) fn increment(values: &mut [(Value, DataType)]) -> bool {
    for (value, data_type) in values.iter_mut().rev() {
        if let Some(next) = value.successor(*data_type) {
            *value = next;
            return true;
        }
        *value = Value::least(*data_type);
    }
    false
}

fn range_key(
    schema: &Schema,
    partition: &PartitionSchema,
    mut values: Vec<(Value, DataType)>,
) -> Vec<u8> {
    let mut out = Vec::new();
    if values.is_empty() {
        return out;
    }
    for column in partition.range.iter().skip(values.len()) {
        let data_type = data_type(schema, *column);
        values.push((Value::least(data_type), data_type));
    }
    let last = values.len() - 1;
    for (i, (value, data_type)) in values.iter().enumerate() {
        key::push_value(&mut out, value, *data_type, i == last);
    }
    out
}

/// Cuts range keys where the hash dimensions change.
fn pieces<'a>(
    partition: &'a PartitionSchema,
    whole: &KeyRange,
) -> Vec<(KeyRange, &'a [HashDimension])> {
    let mut cuts: Vec<&[u8]> = Vec::new();
    for custom in &partition.custom {
        cuts.extend([custom.lower.as_slice(), custom.upper.as_slice()]);
    }
    cuts.retain(|cut| {
        *cut > whole.lower.as_slice() && (whole.upper.is_empty() || *cut < whole.upper.as_slice())
    });
    cuts.sort_unstable();
    cuts.dedup();
    let starts = [whole.lower.as_slice()].into_iter().chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([whole.upper.as_slice()]);
    starts
        .zip(ends)
        .map(|(lower, upper)| {
            let piece = KeyRange { lower: lower.to_vec(), upper: upper.to_vec() };
            (piece, partition.dimensions_at(lower))
        })
        .filter(|(piece, _)| !piece.is_empty())
        .collect()
}

/// One range for each combination of buckets that may have rows.
fn expand(
    schema: &Schema,
    piece: &KeyRange,
    dimensions: &[HashDimension],
    tests: &Tests,
    out: &mut Vec<KeyRange>,
) {
    let buckets: Vec<Option<Vec<u32>>> =
        dimensions.iter().map(|dimension| buckets(schema, dimension, tests)).collect();
    let has_range = !piece.lower.is_empty() || !piece.upper.is_empty();
    let constrained = match has_range {
        true => dimensions.len(),
        false => buckets.iter().rposition(Option::is_some).map_or(0, |i| i + 1),
    };
    let mut prefixes: Vec<Vec<u32>> = vec![Vec::new()];
    for (dimension, buckets) in dimensions.iter().zip(&buckets).take(constrained) {
        let all: Vec<u32>;
        let choices = match buckets {
            Some(some) => some,
            None => {
                all = (0..dimension.buckets).collect();
                &all
            }
        };
        prefixes = prefixes
            .iter()
            .flat_map(|prefix| choices.iter().map(|b| [prefix.as_slice(), &[*b]].concat()))
            .collect();
    }
    let encode = |prefix: &[u32]| -> Vec<u8> {
        prefix.iter().flat_map(|bucket| bucket.to_be_bytes()).collect()
    };
    for mut prefix in prefixes {
        let mut lower = encode(&prefix);
        if piece.upper.is_empty() {
            prefix.iter_mut().next_back().into_iter().for_each(|last| *last += 1);
        }
        let mut upper = encode(&prefix);
        lower.extend_from_slice(&piece.lower);
        upper.extend_from_slice(&piece.upper);
        out.push(KeyRange { lower, upper });
    }
}

/// The buckets of a dimension that may have rows, ascending; `None`: all.
fn buckets(schema: &Schema, dimension: &HashDimension, tests: &Tests) -> Option<Vec<u32>> {
    let mut lists: Vec<(&[Value], DataType)> = Vec::new();
    let mut combinations = 1_usize;
    for column in &dimension.columns {
        let list = match test_on(tests, *column)? {
            Test::Equal(value) => std::slice::from_ref(value),
            Test::In(list) => list,
            _ => return None,
        };
        combinations = combinations.saturating_mul(list.len());
        lists.push((list, data_type(schema, *column)));
    }
    if combinations > COMBINATIONS_MAX {
        return None;
    }
    let mut hit = vec![false; dimension.buckets as usize];
    let mut encoded = Vec::new();
    for mut combination in 0..combinations {
        encoded.clear();
        for (i, (list, data_type)) in lists.iter().enumerate() {
            if let Some(value) = list.get(combination % list.len()) {
                key::push_value(&mut encoded, value, *data_type, i + 1 == lists.len());
            }
            combination /= list.len();
        }
        let bucket = key::bucket(&encoded, dimension.seed, dimension.buckets);
        if let Some(hit) = hit.get_mut(bucket as usize) {
            *hit = true;
        }
    }
    let hits = (0..).zip(&hit).filter(|(_, hit)| **hit).map(|(bucket, _)| bucket);
    let hits: Vec<u32> = hits.collect();
    (hits.len() < hit.len()).then_some(hits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predicate::{Predicate, normalise};
    use crate::schema::Column;

    /// HASH(a) 2, HASH(b) 3, RANGE(c)
    fn table() -> (Schema, PartitionSchema) {
        let columns = ["a", "b", "c"].map(|name| Column::new(name, DataType::Int8)).to_vec();
        let dimension = |column, buckets| HashDimension { columns: vec![column], buckets, seed: 0 };
        let partition = PartitionSchema {
            hash: vec![dimension(0, 2), dimension(1, 3)],
            range: vec![2],
            custom: Vec::new(),
        };
        (Schema::new(columns, 3).unwrap(), partition)
    }

    fn ranges(predicates: &[Predicate]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (schema, partition) = table();
        let tests = normalise(predicates, &schema).unwrap();
        let pruned = prune(&schema, &partition, &tests);
        pruned.into_iter().map(|r| (r.lower, r.upper)).collect()
    }

    fn prefix(buckets: &[u32]) -> Vec<u8> {
        buckets.iter().flat_map(|b| b.to_be_bytes()).collect()
    }

    #[test]
    fn nothing_known_is_one_range() {
        assert_eq!(ranges(&[]), [(vec![], vec![])]);
    }

    #[test]
    fn contradictions_visit_nothing() {
        assert!(ranges(&[Predicate::equal("c", 1), Predicate::equal("c", 2)]).is_empty());
    }

    #[test]
    fn a_leading_bucket_is_one_range() {
        let got = ranges(&[Predicate::equal("a", 0)]);
        let bucket = u32::from_be_bytes(got[0].0[..4].try_into().unwrap());
        assert_eq!(got, [(prefix(&[bucket]), prefix(&[bucket + 1]))]);
    }

    #[test]
    fn a_later_bucket_is_a_range_for_each_before() {
        let got = ranges(&[Predicate::equal("b", 0)]);
        let bucket = u32::from_be_bytes(got[0].0[4..8].try_into().unwrap());
        let expected = [0, 1].map(|a| (prefix(&[a, bucket]), prefix(&[a, bucket + 1])));
        assert_eq!(got, expected);
    }

    #[test]
    fn a_range_value_is_a_range_for_each_bucket() {
        let got = ranges(&[Predicate::equal("c", 0)]);
        let mut expected = Vec::new();
        for a in 0..2 {
            for b in 0..3 {
                let with = |key: u8| [prefix(&[a, b]), vec![key]].concat();
                expected.push((with(0x80), with(0x81)));
            }
        }
        assert_eq!(got, expected);
        let open = ranges(&[Predicate::greater_or_equal("c", 1)]);
        assert_eq!(open[0], ([prefix(&[0, 0]), vec![0x81]].concat(), prefix(&[0, 1])));
        assert_eq!(ranges(&[Predicate::less_or_equal("c", 127)]), [(vec![], vec![])]);
    }

    #[test]
    fn lists_visit_the_buckets_of_their_values() {
        let all: Vec<i32> = (0..100).collect();
        assert_eq!(ranges(&[Predicate::in_list("a", all)]), [(vec![], vec![])]);
        let one = ranges(&[Predicate::in_list("a", [0])]);
        assert_eq!(one, ranges(&[Predicate::equal("a", 0)]));
    }
}
