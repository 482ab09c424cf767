//! The texts of a batch's dictionaries, escaped once: rows of one batch are often written in many
//! calls, a few for each series.

use std::sync::Arc;

use model::{ColumnBatch, Strings, Values};

use crate::output::Output;
use crate::text::push_string;

/// Bytes of a short text with its comma and quotes, at most.
const SHORT_MAX: usize = 31;

/// The texts of the batch that is being written.
#[derive(Debug, Default)]
pub(super) struct BatchTexts {
    /// Held so that no other batch can have its address.
    batch: Option<Arc<ColumnBatch>>,
    /// Of each column, if it is a dictionary that pays.
    columns: Vec<Option<Texts>>,
}

/// The escaped texts of a dictionary, in quotes.
#[derive(Debug)]
pub(super) enum Texts {
    /// None is long.
    Short(Vec<ShortText>),
    /// One after another, with their boundaries.
    Long(Vec<u8>, Vec<usize>),
}

/// A comma, a text and, in the last byte, how many bytes that is: all are copied at once and those
/// too many taken back, which is faster than a copy of unknown length.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortText([u8; SHORT_MAX + 1]);

impl BatchTexts {
    /// Those of a batch.
    pub(super) fn new(batch: &Arc<ColumnBatch>) -> Self {
        let texts = |values: &Values| match values {
            // A dictionary of which few texts are used is not worth it.
            Values::Dictionary(_, texts) if texts.len() <= batch.rows => Some(Texts::of(texts)),
            _ => None,
        };
        let columns = batch.columns.iter().map(|column| texts(&column.values)).collect();
        Self { batch: Some(Arc::clone(batch)), columns }
    }

    /// Whether they are those of `batch`.
    pub(super) fn are_of(&self, batch: &Arc<ColumnBatch>) -> bool {
        self.batch.as_ref().is_some_and(|known| Arc::ptr_eq(known, batch))
    }

    /// Those of each column.
    pub(super) fn columns(&self) -> &[Option<Texts>] {
        &self.columns
    }
}

impl Texts {
    pub(super) fn of(texts: &Strings) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for at in 0..texts.len() {
            push_string(&mut bytes, texts.get_bytes(at));
            ends.push(bytes.len());
        }
        let text = |bounds: &[usize]| ShortText::of(&bytes[bounds[0]..bounds[1]]);
        match ends.windows(2).map(text).collect() {
            Some(short) => Self::Short(short),
            None => Self::Long(bytes, ends),
        }
    }

    /// Writes a text without a comma.
    pub(super) fn push(&self, out: &mut impl Output, code: usize) {
        match self {
            Self::Short(texts) => {
                let bytes = &texts[code].0;
                out.put(&bytes[1..usize::from(bytes[SHORT_MAX])]);
            }
            Self::Long(bytes, ends) => out.put(&bytes[ends[code]..ends[code + 1]]),
        }
    }
}

impl ShortText {
    fn of(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; SHORT_MAX + 1];
        bytes[0] = b',';
        bytes[1..SHORT_MAX].get_mut(..text.len())?.copy_from_slice(text);
        bytes[SHORT_MAX] = text.len() as u8 + 1;
        Some(Self(bytes))
    }

    /// Writes a comma and the text.
    #[inline]
    pub(super) fn push(&self, out: &mut impl Output) {
        out.put_first(&self.0, usize::from(self.0[SHORT_MAX]));
    }
}
