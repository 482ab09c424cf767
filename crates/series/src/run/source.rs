//! A run as input of a merge: read front to back, past the cache.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::SeriesResult;
use crate::hash::KeyHash;
use crate::part::MeasurementPart;
use crate::posting::Posting;
use crate::run::directory::EntryHeads;
use crate::run::lookup::{hash_entry_bytes, read_hash};
use crate::run::read::RunMeasurement;
use crate::run::walk::{SeriesWalk, ValueWalk};
use crate::run::{Page, Run};
use crate::source::{Source, SourceKey, SourceMeasurement};

#[derive(Debug)]
pub(crate) struct RunSource<'a> {
    run: &'a Arc<Run>,
    next_directory_block: usize,
    measurements: VecDeque<RunMeasurement<'a>>,
    terms: ValueWalk<'a>,
    term_start: u32,
    series: SeriesWalk<'a>,
    next_bucket: usize,
    hashes: VecDeque<(KeyHash, u64)>,
}

impl<'a> RunSource<'a> {
    pub(crate) fn new(run: &'a Arc<Run>) -> Self {
        Self {
            run,
            next_directory_block: 0,
            measurements: VecDeque::new(),
            terms: ValueWalk::new(run, 0..0).uncached(),
            term_start: 0,
            series: SeriesWalk::new(run, 0..0).uncached(),
            next_bucket: 0,
            hashes: VecDeque::new(),
        }
    }

    fn read_directory_block(&mut self) -> SeriesResult<bool> {
        let run = self.run;
        let Some(block) = run.meta.directory.list.blocks.get(self.next_directory_block) else {
            return Ok(false);
        };
        self.next_directory_block += 1;
        let page = run.file.page_uncached(*block)?;
        let mut heads = run.file.checked(*block, EntryHeads::new(&page))?;
        while let Some(head) = run.file.checked(*block, heads.advance())? {
            let entry = run.file.checked(*block, head.read())?;
            let measurement = RunMeasurement::new(run, *block, Page::clone(&page), entry)?;
            self.measurements.push_back(measurement);
        }
        Ok(true)
    }

    fn missing(&self, what: &str) -> crate::error::SeriesError {
        self.run.file.corrupt(0, what)
    }
}

impl Source for RunSource<'_> {
    fn next_measurement(&mut self) -> SeriesResult<Option<SourceMeasurement>> {
        let measurement = loop {
            match self.measurements.pop_front() {
                Some(measurement) => break measurement,
                None if self.read_directory_block()? => {}
                None => return Ok(None),
            }
        };
        self.terms.seek(measurement.terms());
        self.term_start = measurement.terms().start;
        self.series.seek(measurement.series());
        let mut keys = Vec::with_capacity(measurement.key_count() as usize);
        for key in 0..measurement.key_count() {
            keys.push(SourceKey {
                name: measurement.key_text(key).into(),
                terms: measurement.key_terms(key).len() as u32,
                present: measurement.present(key)?,
            });
        }
        Ok(Some(SourceMeasurement {
            database: measurement.database(),
            name: measurement.name().into(),
            series: measurement.series().len() as u32,
            all: measurement.all()?,
            keys,
        }))
    }

    fn next_term(&mut self, value: &mut String, posting: &mut Posting) -> SeriesResult<()> {
        if !self.terms.advance()? {
            return Err(self.missing("a measurement has fewer terms than it says"));
        }
        value.clear();
        value.push_str(self.terms.text()?);
        self.terms.load_posting(posting)
    }

    fn next_series(&mut self, tuple: &mut Vec<u32>) -> SeriesResult<u64> {
        if !self.series.advance()? {
            return Err(self.missing("a measurement has fewer series than it says"));
        }
        tuple.clear();
        for term in &self.series.state.tuple {
            let own = term.checked_sub(self.term_start);
            let own = own.ok_or_else(|| self.missing("a series has a tag of another measurement"));
            tuple.push(own?);
        }
        Ok(self.series.state.id)
    }

    fn terms(&self) -> u64 {
        u64::from(self.run.meta.terms)
    }

    fn next_hash(&mut self) -> SeriesResult<Option<(KeyHash, u64)>> {
        let run = self.run;
        while self.hashes.is_empty() {
            let Some(block) = run.meta.buckets.blocks.get(self.next_bucket) else {
                return Ok(None);
            };
            self.next_bucket += 1;
            let page = run.file.page_uncached(*block)?;
            let wide = run.meta.wide_ids;
            for entry in page.chunks(hash_entry_bytes(wide)) {
                let (hash, offset) = run.file.checked(*block, read_hash(entry, wide))?;
                self.hashes.push_back((hash, run.id_from(*block, offset)?));
            }
        }
        Ok(self.hashes.pop_front())
    }
}
