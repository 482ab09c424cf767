//! Texts that come together again and again, joined: rows of many series in order of time show the same tags
//! side by side every few rows. To look whether they are the same costs a fraction of writing each of them.

use super::texts::ShortText;
use crate::output::{Output, Room};

/// Bytes of texts with their commas that are kept together, at most.
const JOINED_BYTES: usize = 128;
/// Most that are kept: 700 KB of ten columns.
const JOINED_MAX: usize = 4096;
/// Fewer columns are not worth it.
const JOINED_COLUMNS_MIN: usize = 4;
/// Stands for a code that nothing has.
const NONE: u32 = u32::MAX;

/// Neighbouring columns of short texts: the code of each row, and what the codes stand for.
pub(super) type ShortColumns<'a> = Vec<(&'a [u32], &'a [ShortText])>;

/// Joined texts of neighbouring columns, found by the code of the column that has most of them.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// The column to find them by, and how many there are.
    key: usize,
    width: usize,
    /// For each code of that column the codes of all columns that were joined.
    codes: Vec<u32>,
    texts: Vec<JoinedText>,
}

/// Bytes, and how many count.
#[derive(Clone, Copy, Debug)]
struct JoinedText([u8; JOINED_BYTES], usize);

impl Joined {
    /// Gets ready for `columns`, unless it is not worth it for them. What it knows it keeps, if it was ready
    /// for as many before.
    pub(super) fn prepare(&mut self, columns: &ShortColumns<'_>) -> bool {
        let lens = columns.iter().map(|(_, texts)| texts.len());
        let Some((key, len)) = lens.enumerate().max_by_key(|(_, len)| *len) else { return false };
        if columns.len() < JOINED_COLUMNS_MIN || len > JOINED_MAX {
            return false;
        }
        if (self.key, self.width, self.texts.len()) != (key, columns.len(), len) {
            let texts = vec![JoinedText([0; JOINED_BYTES], 0); len];
            *self =
                Self { key, width: columns.len(), codes: vec![NONE; len * columns.len()], texts };
        }
        true
    }

    /// Forgets everything: other texts come.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Writes the texts of a row of the columns it was prepared for, each with the comma before it.
    #[inline]
    pub(super) fn push(&mut self, out: &mut Room<'_>, columns: &ShortColumns<'_>, row: usize) {
        let place = columns[self.key].0[row] as usize;
        let codes = &self.codes[place * self.width..][..self.width];
        if columns.iter().zip(codes).all(|((of_rows, _), code)| of_rows[row] == *code) {
            let JoinedText(bytes, len) = &self.texts[place];
            out.put_first(bytes, *len);
        } else {
            self.push_new(out, columns, row, place);
        }
    }

    /// Writes texts that are not known together, and remembers them if they are short enough.
    fn push_new(
        &mut self,
        out: &mut Room<'_>,
        columns: &ShortColumns<'_>,
        row: usize,
        place: usize,
    ) {
        let start = out.len();
        columns.iter().for_each(|(codes, texts)| texts[codes[row] as usize].push(out));
        let written = out.since(start);
        let JoinedText(bytes, len) = &mut self.texts[place];
        if let Some(room) = bytes.get_mut(..written.len()) {
            room.copy_from_slice(written);
            *len = written.len();
            let codes = &mut self.codes[place * self.width..][..self.width];
            codes.iter_mut().zip(columns).for_each(|(code, (of_rows, _))| *code = of_rows[row]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::texts::Texts;
    use model::Strings;
    use proptest::prelude::*;

    fn short(texts: &Texts) -> &[ShortText] {
        match texts {
            Texts::Short(texts) => texts,
            Texts::Long(..) => panic!("all are short"),
        }
    }

    proptest! {
        #[test]
        fn joined_or_not_texts_are_the_same(
            dictionaries in prop::collection::vec(
                prop::collection::vec("[a-z]{0,12}<?", 1..5), JOINED_COLUMNS_MIN..12,
            ),
            rows in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 12), 1..60),
        ) {
            let texts: Vec<Texts> = dictionaries
                .iter()
                .map(|texts| Texts::of(&texts.iter().map(String::as_str).collect::<Strings>()))
                .collect();
            let codes: Vec<Vec<u32>> = (0..texts.len())
                .map(|at| rows.iter().map(|row| row[at].index(dictionaries[at].len()) as u32).collect())
                .collect();
            let columns: ShortColumns<'_> = codes
                .iter()
                .zip(&texts)
                .map(|(codes, texts)| (codes.as_slice(), short(texts)))
                .collect();
            let mut joined = Joined::default();
            // Twice, so that everything was met before.
            for _ in 0..2 {
                prop_assert!(joined.prepare(&columns));
                for row in 0..rows.len() {
                    let (mut out, mut expected) = (b"x".to_vec(), b"x".to_vec());
                    let mut room = Room::new(&mut out, 0);
                    joined.push(&mut room, &columns, row);
                    room.finish();
                    columns.iter().for_each(|(codes, texts)| texts[codes[row] as usize].push(&mut expected));
                    prop_assert_eq!(out, expected);
                }
            }
        }
    }

    #[test]
    fn few_columns_and_many_texts_are_left() {
        let texts = |count: usize| {
            let texts: Vec<String> = (0..count).map(|n| n.to_string()).collect();
            Texts::of(&texts.iter().map(String::as_str).collect::<Strings>())
        };
        let (one, many) = (texts(1), texts(JOINED_MAX + 1));
        let column = |texts| (&[0][..], short(texts));
        assert!(!Joined::default().prepare(&vec![column(&one); JOINED_COLUMNS_MIN - 1]));
        let mut columns = vec![column(&one); JOINED_COLUMNS_MIN];
        assert!(Joined::default().prepare(&columns));
        columns[1] = column(&many);
        assert!(!Joined::default().prepare(&columns));
    }
}
