//! Tags of the rows of a subquery or join as columns behind its fields, for functions that take them as texts: how many hosts
//! have sent something is `count(distinct(host))` of the latest row of each.

use model::ColumnBatch;
use store::{
    ExtentPart, Scan, ScanCursor, ScanItem, ScanSlice, ScanStats, SeriesTable, StoreError,
    TagColumn,
};

use super::{ColumnSource, InputPlan, Wanted, tag_column};

impl InputPlan {
    /// Makes columns of the tags that functions take: behind the fields that are `wanted`, which must be all. Their places in
    /// the series table.
    pub(super) fn take_tags(&mut self, wanted: &Wanted) -> Vec<usize> {
        let mut tags = Vec::new();
        for call in &mut self.calls {
            let ColumnSource::Tag { at, .. } = *call else { continue };
            let place = tags.iter().position(|tag| *tag == at).unwrap_or_else(|| {
                tags.push(at);
                tags.len() - 1
            });
            *call = ColumnSource::Column { at: 1 + wanted.fields.len() + place, cast: None };
        }
        tags
    }
}

/// A scan with columns of some tags.
pub(super) fn tagged(scan: Box<dyn Scan>, tags: &[usize]) -> Box<dyn Scan> {
    if tags.is_empty() { scan } else { Box::new(Tagged { scan, tags: tags.to_vec() }) }
}

struct Tagged {
    scan: Box<dyn Scan>,
    /// Places in the series table.
    tags: Vec<usize>,
}

impl Scan for Tagged {
    fn series(&self) -> &SeriesTable {
        self.scan.series()
    }

    fn extent(&self) -> Vec<ExtentPart> {
        self.scan.extent()
    }

    fn cuts(&self, series: Option<&[u32]>, parts: usize) -> Result<Vec<usize>, StoreError> {
        self.scan.cuts(series, parts)
    }

    fn open(&self, slice: &ScanSlice) -> Result<Box<dyn ScanCursor>, StoreError> {
        let tags = self.tags.iter().map(|tag| self.series().tags[*tag].clone()).collect();
        Ok(Box::new(TaggedCursor { cursor: self.scan.open(slice)?, tags }))
    }

    fn stats(&self) -> ScanStats {
        self.scan.stats()
    }
}

struct TaggedCursor {
    cursor: Box<dyn ScanCursor>,
    tags: Vec<TagColumn>,
}

impl ScanCursor for TaggedCursor {
    fn next(&mut self) -> Result<Option<ScanItem>, StoreError> {
        let mut item = self.cursor.next()?;
        if let Some(ScanItem::Rows(ColumnBatch { rows, runs, columns })) = &mut item {
            // The tags of a subquery's rows are its dimensions, which are always there.
            let tags = self.tags.iter().map(|tag| tag_column(*rows, runs, tag, true));
            columns.extend(tags);
        }
        Ok(item)
    }
}
