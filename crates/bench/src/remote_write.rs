//! Line protocol as Prometheus would send it: remote write 1.0, a series with one sample for each number.
//!
//! For the generators' lines: nothing in them is escaped, and what is no number is left out.

/// Keys of protocol buffers' fields: number and type.
const SERIES: u8 = 1 << 3 | 2;
const LABEL: u8 = 1 << 3 | 2;
const SAMPLE: u8 = 2 << 3 | 2;
const NAME: u8 = 1 << 3 | 2;
const TEXT: u8 = 2 << 3 | 2;
const VALUE: u8 = 1 << 3 | 1;
const TIME: u8 = 2 << 3;

const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// Turns `lines` into a body of remote write, packed.
pub(crate) fn body(lines: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(lines.len() * 8);
    let (mut tags, mut series) = (Vec::new(), Vec::new());
    for line in lines.split(|byte| *byte == b'\n') {
        let Some((key, fields, time)) = split_line(line) else { continue };
        let mut names: Vec<&[u8]> = key.split(|byte| *byte == b',').collect();
        let measurement = names.remove(0);
        // Prometheus sorts labels, of which its own comes first.
        names.sort_unstable();
        tags.clear();
        for (name, value) in names.iter().filter_map(|tag| split_once(tag, b'=')) {
            push_label(&mut tags, name, value);
        }
        for (field, value) in fields.split(|byte| *byte == b',').filter_map(|f| split_once(f, b'='))
        {
            let Some(value) = number(value) else { continue };
            series.clear();
            push_label(&mut series, b"__name__", &[measurement, b"_", field].concat());
            series.extend_from_slice(&tags);
            let mut sample = vec![VALUE];
            sample.extend_from_slice(&value.to_le_bytes());
            sample.push(TIME);
            push_varint(&mut sample, (time / NANOSECONDS_PER_MILLISECOND) as u64);
            push_part(&mut series, SAMPLE, &sample);
            push_part(&mut message, SERIES, &series);
        }
    }
    let packed = snap::raw::Encoder::new().compress_vec(&message);
    packed.expect("BUG: a body of 4 GiB")
}

/// The key, the fields and the time of a line.
fn split_line(line: &[u8]) -> Option<(&[u8], &[u8], i64)> {
    let (key, rest) = split_once(line, b' ')?;
    let space = rest.iter().rposition(|byte| *byte == b' ')?;
    let time = std::str::from_utf8(&rest[space + 1..]).ok()?.parse().ok()?;
    Some((key, &rest[..space], time))
}

fn number(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    text.strip_suffix('i').unwrap_or(text).parse().ok()
}

fn split_once(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let found = text.iter().position(|byte| *byte == at)?;
    Some((&text[..found], &text[found + 1..]))
}

fn push_label(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let mut label = Vec::with_capacity(64);
    push_part(&mut label, NAME, name);
    push_part(&mut label, TEXT, value);
    push_part(out, LABEL, &label);
}

fn push_part(out: &mut Vec<u8>, key: u8, part: &[u8]) {
    out.push(key);
    push_varint(out, part.len() as u64);
    out.extend_from_slice(part);
}

fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_a_series() {
        let packed = body(b"m,t=b,a=c v=1.5,w=2i,s=\"x\" 3000000\n");
        let plain = snap::raw::Decoder::new().decompress_vec(&packed).unwrap();
        let label = |name: &[u8], value: &[u8]| {
            let mut out = vec![LABEL, (4 + name.len() + value.len()) as u8];
            out.extend(
                [&[NAME, name.len() as u8], name, &[TEXT, value.len() as u8], value].concat(),
            );
            out
        };
        let series = |name: &[u8], value: f64| {
            let labels = [label(b"__name__", name), label(b"a", b"c"), label(b"t", b"b")].concat();
            let sample = [&[SAMPLE, 11, VALUE][..], &value.to_le_bytes(), &[TIME, 3]].concat();
            let mut out = vec![SERIES, (labels.len() + sample.len()) as u8];
            out.extend([labels, sample].concat());
            out
        };
        assert_eq!(plain, [series(b"m_v", 1.5), series(b"m_w", 2.0)].concat());
    }
}
