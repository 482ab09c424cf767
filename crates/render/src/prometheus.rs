//! The answer to Prometheus' remote read: a protocol buffer, not yet packed.

use prost::Message;

/// Series and samples of one query.
#[derive(Clone, PartialEq, Message)]
pub struct ReadResult {
    #[prost(message, repeated, tag = "1")]
    series: Vec<ReadSeries>,
}

/// One series.
#[derive(Clone, PartialEq, Message)]
pub struct ReadSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp_ms: i64,
}

/// Bytes of memory that a sample takes.
pub const SAMPLE_BYTES: usize = size_of::<Sample>();

impl ReadSeries {
    /// A series with these labels, sorted by name; those without a value are left out.
    pub fn new<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let labels = labels.into_iter().filter(|(_, value)| !value.is_empty());
        let mut labels: Vec<Label> = labels
            .map(|(name, value)| Label { name: name.to_owned(), value: value.to_owned() })
            .collect();
        labels.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Self { labels, samples: Vec::new() }
    }

    /// Adds a sample; times come in order.
    pub fn push(&mut self, time_ns: i64, value: f64) {
        let timestamp_ms = time_ns.div_euclid(1_000_000);
        self.samples.push(Sample { value, timestamp_ms });
    }
}

impl ReadResult {
    /// Adds a series; one without samples is left out.
    pub fn push(&mut self, series: ReadSeries) {
        if !series.samples.is_empty() {
            self.series.push(series);
        }
    }

    /// The whole answer.
    #[must_use]
    pub fn encode_response(&self) -> Vec<u8> {
        let mut out = Vec::new();
        prost::encoding::message::encode(1, self, &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, PartialEq, Message)]
    struct Response {
        #[prost(message, repeated, tag = "1")]
        results: Vec<ReadResult>,
    }

    #[test]
    fn what_is_written_can_be_read() {
        let mut result = ReadResult::default();
        let mut series = ReadSeries::new([("job", "x"), ("__name__", "up"), ("none", "")]);
        series.push(1_999_999, 1.0);
        series.push(-1, 2.5);
        result.push(series);
        result.push(ReadSeries::new([("job", "empty")]));
        let read = Response::decode(&*result.encode_response()).unwrap();
        assert_eq!(read.results, [result]);
        let series = &read.results[0].series;
        assert_eq!(series.len(), 1);
        let names: Vec<&str> = series[0].labels.iter().map(|l| l.name.as_str()).collect();
        assert_eq!(names, ["__name__", "job"]);
        let times: Vec<i64> = series[0].samples.iter().map(|s| s.timestamp_ms).collect();
        assert_eq!(times, [1, -1]);
        let empty = Response::decode(&*ReadResult::default().encode_response()).unwrap();
        assert_eq!(empty.results, [ReadResult::default()], "one query, one result");
    }
}
