//! Which rows of a block have certain texts, or pieces of text in them, where pages of texts tell without being decoded.

use std::ops::Range;

use codec::{TextFinder, Wants};
use model::{Bitmap, CompareOp, Scalar, TextPieces, TextTest};

use super::SegmentReader;
use crate::SegmentError;
use crate::directory::{Block, PageEntry};
use crate::reader::column;
use crate::reader::fields::shape;
use crate::sift::{FieldCondition, FieldOperand};

/// See [`SegmentReader::matching`]. `None` as well if not all conditions are about texts.
pub(super) fn matching(
    reader: &SegmentReader,
    block: &Block,
    parts: &[Range<usize>],
    conditions: &[FieldCondition],
) -> Result<Option<Vec<Bitmap>>, SegmentError> {
    let mut found: Option<Vec<Bitmap>> = None;
    for condition in conditions {
        let Some((_, page)) = block.page_place(condition.field) else { return Ok(None) };
        let bits = match &condition.operand {
            _ if !condition.is_of_texts() => None,
            FieldOperand::Text(pattern) => {
                let pieces = pattern.pieces();
                let texts: Vec<&[u8]> = pieces.texts().collect();
                let is_match = |text: &[u8]| pattern.is_match(text);
                let wants = match pattern.test() {
                    TextTest::Having => Wants::Having,
                    TextTest::Being => Wants::Being,
                    TextTest::Starting => Wants::Starting,
                    TextTest::Ending => Wants::Ending,
                    TextTest::Matching(_) => Wants::Matching(&is_match),
                };
                let has_text = |text: &[u8]| pieces.are_in(text);
                let finder = TextFinder { texts: &texts, has_text: &has_text, wants };
                of_page(reader, block, page, parts, (&finder, condition.op))?
            }
            FieldOperand::Constant(Scalar::String(whole)) => {
                let pieces = TextPieces::one(whole.as_bytes());
                let has_text = |text: &[u8]| pieces.are_in(text);
                let (texts, wants) = (&[whole.as_bytes()], Wants::Being);
                let finder = TextFinder { texts, has_text: &has_text, wants };
                of_page(reader, block, page, parts, (&finder, condition.op))?
            }
            _ => None,
        };
        let Some(bits) = bits else { return Ok(None) };
        found = Some(match found {
            None => bits,
            Some(found) => found.iter().zip(&bits).map(|(a, b)| a.and(b)).collect(),
        });
    }
    Ok(found)
}

impl SegmentReader {
    /// Whether [`Self::matching`] takes as much shorter for some rows of a block as they are fewer, if all conditions are about texts.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub fn are_searched_apart(
        &self,
        block: &Block,
        conditions: &[FieldCondition],
    ) -> Result<bool, SegmentError> {
        for condition in conditions {
            let Some((_, page)) = block.page_place(condition.field) else { return Ok(false) };
            let bytes = self.shared.source.page(&page.extent, self.keep_pages)?;
            if !column::are_searched_apart(&bytes, shape(block, page)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Those rows of each part that have a text which a finder wants, or, with [`CompareOp::NotEqual`], one that it does not.
fn of_page(
    reader: &SegmentReader,
    block: &Block,
    page: &PageEntry,
    parts: &[Range<usize>],
    (finder, op): (&TextFinder<'_>, CompareOp),
) -> Result<Option<Vec<Bitmap>>, SegmentError> {
    let source = &reader.shared.source;
    let bytes = source.page(&page.extent, reader.keep_pages)?;
    let mut found = Vec::with_capacity(parts.len());
    for rows in parts {
        let wanted = op == CompareOp::Equal;
        let bits = column::search(&bytes, shape(block, page), rows.clone(), finder, wanted);
        match bits.map_err(|e| source.malformed(page.extent.offset, &e))? {
            Some(bits) => found.push(bits),
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}
