//! Heads of series. Neighbours mostly differ in the values of their tags alone: the rest of a head is
//! written once and copied.

use std::sync::Arc;

use model::{Name, SeriesHeader};

use crate::text::push_string;

/// Bytes that most heads do not have more of.
const TEXT_BYTES: usize = 256;

/// The text of a head without the values of its tags, and what it is of.
#[derive(Debug, Default)]
pub(super) struct HeadText {
    name: Name,
    keys: Vec<Name>,
    columns: Arc<[Name]>,
    text: Vec<u8>,
    /// Where the values of the tags belong in the text.
    gaps: Vec<usize>,
}

impl HeadText {
    /// A head's text as `write` gives it, which calls its second argument where a tag's value belongs.
    pub(super) fn new(
        header: &SeriesHeader,
        write: impl FnOnce(&mut Vec<u8>, &mut dyn FnMut(&Vec<u8>)),
    ) -> Self {
        let (mut text, mut gaps) =
            (Vec::with_capacity(TEXT_BYTES), Vec::with_capacity(header.tags.len()));
        write(&mut text, &mut |text| gaps.push(text.len()));
        assert_eq!(gaps.len(), header.tags.len(), "BUG: a head with other tags than its series");
        Self {
            name: Arc::clone(&header.name),
            keys: header.tags.iter().map(|(key, _)| Arc::clone(key)).collect(),
            columns: Arc::clone(&header.columns),
            text,
            gaps,
        }
    }

    /// Whether this is known to be the text of a series' head.
    pub(super) fn is_of(&self, header: &SeriesHeader) -> bool {
        let same_keys = || {
            let mut pairs = self.keys.iter().zip(&header.tags);
            self.keys.len() == header.tags.len() && pairs.all(|(a, (b, _))| Arc::ptr_eq(a, b))
        };
        !self.text.is_empty()
            && Arc::ptr_eq(&self.name, &header.name)
            && Arc::ptr_eq(&self.columns, &header.columns)
            && same_keys()
    }

    /// Length of the text.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Writes the head of a series that it [is of](Self::is_of).
    pub(super) fn push(&self, out: &mut Vec<u8>, header: &SeriesHeader) {
        let mut from = 0;
        for (gap, (_, value)) in self.gaps.iter().zip(&header.tags) {
            out.extend_from_slice(&self.text[from..*gap]);
            push_string(out, value.as_bytes());
            from = *gap;
        }
        out.extend_from_slice(&self.text[from..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::JsonSink;
    use crate::sink::Sink;

    fn header(shape: (&Name, &[Name], &Arc<[Name]>), values: &[&str]) -> SeriesHeader {
        let (name, keys, columns) = shape;
        let tags =
            keys.iter().cloned().zip(values.iter().map(|value| Name::from(*value))).collect();
        SeriesHeader { name: name.clone(), tags, columns: columns.clone(), list: None }
    }

    /// The same with nothing shared.
    fn alone(header: &SeriesHeader) -> SeriesHeader {
        let copy = |name: &Name| Name::from(&**name);
        SeriesHeader {
            name: copy(&header.name),
            tags: header.tags.iter().map(|(key, value)| (copy(key), copy(value))).collect(),
            columns: header.columns.iter().map(copy).collect(),
            list: None,
        }
    }

    #[test]
    fn what_is_shared_is_written_as_what_is_not() {
        let (cpu, none): (Name, Name) = ("cpu".into(), "".into());
        let (host, zone): (Name, Name) = ("ho\"st".into(), "zone".into());
        let (one, two): (Arc<[Name]>, Arc<[Name]>) =
            (["time".into()].into(), ["time".into(), "v<".into()].into());
        let (of_host, both) = ([host.clone()], [host, zone]);
        let series = [
            header((&cpu, &of_host, &two), &["a"]),
            header((&cpu, &of_host, &two), &["b\n"]),
            header((&cpu, &both, &two), &["a", ""]),
            header((&cpu, &both, &two), &["", "z"]),
            header((&cpu, &both, &one), &["", "z"]),
            header((&none, &both, &one), &["x", "y"]),
            header((&none, &[], &one), &[]),
            header((&cpu, &[], &one), &[]),
            header((&cpu, &[], &one), &[]),
            header((&cpu, &of_host, &two), &["c"]),
        ];
        for pretty in [false, true] {
            let mut shared = JsonSink::new(pretty, None);
            let (mut out, mut expected) = (Vec::new(), Vec::new());
            let mut separate = JsonSink::new(pretty, None);
            for header in &series {
                shared.begin_series(&mut out, header);
                separate.head = HeadText::default();
                separate.begin_series(&mut expected, &alone(header));
            }
            assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(expected).unwrap());
            assert_eq!(shared.head.gaps.len(), 1);
            assert!(shared.head.is_of(&series[1]) && !shared.head.is_of(&series[2]));
        }
    }
}
