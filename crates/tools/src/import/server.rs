//! Imports everything from a running server.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;

use super::options::Options;
use super::state::State;
use super::users::{self, Passwords};
use super::{schema, verify};
use crate::http::{Client, Endpoint};
use crate::influx;
use crate::progress::{Progress, say};
use crate::source::{
    Layout, Policy, Shards, Slice, Window, continuous_queries, databases, line_of, measurements,
    policies, read_slice,
};
use crate::write::{LineWriter, Target, Written, is_broken_connection};

/// Waits before a slice is read again from a source that was gone.
const WAITS_S: [u64; 5] = [1, 2, 4, 8, 16];

/// Both ends of an import.
struct Import<'o> {
    options: &'o Options,
    from: Client,
    to: Client,
    state: State,
    progress: Progress,
    written: Written,
    shards: Shards,
    /// Of slices that end later the source may get more rows.
    started_ns: i64,
}

/// Imports; whether everything arrived.
pub(super) fn run(source: &Endpoint, options: &Options) -> Result<bool> {
    let started = Timestamp::now();
    let (from, to) = (source.to_string(), options.to.to_string());
    let passwords = options.passwords.as_deref().map(Passwords::create).transpose()?;
    let state = State::open(options.state.as_deref(), &from, &to)?;
    if state.slices_done() > 0 {
        say(&format!("going on: {} slices are done", state.slices_done()));
    }
    let mut from = Client::new(source.clone())?;
    let shards = Shards::ask(&mut from);
    let mut to = Client::new(options.to.clone())?;
    influx::ping(&mut to)?;
    let (progress, written) = (Progress::new(), Written::default());
    let started_ns = i64::try_from(started.as_nanosecond())?;
    let mut import = Import { options, from, to, state, progress, written, shards, started_ns };
    import.run(passwords)
}

impl Import<'_> {
    fn run(&mut self, passwords: Option<Passwords>) -> Result<bool> {
        let mut differences = Vec::new();
        let mut values = 0;
        let mut queries = Vec::new();
        for db in databases(&mut self.from, &self.options.databases)? {
            let policies = policies(&mut self.from, &db)?;
            schema::ensure(&mut self.to, &db, &policies)?;
            let layouts = measurements(&mut self.from, &db, &policies)?;
            for layout in &layouts {
                for (field, kinds) in layout.mixed() {
                    let name = &layout.measurement;
                    say(&format!("{db}.{name}: field {field:?} has several types: {kinds}"));
                }
                for policy in &policies {
                    self.copy(&db, &policy.name, layout)?;
                }
            }
            if self.options.verify {
                for (policy, layout) in pairs(&policies, &layouts) {
                    let (found, counted) = self.verify(&db, policy, layout)?;
                    differences.extend(found);
                    values += counted;
                }
            }
            queries.extend(continuous_queries(&mut self.from, &db)?);
        }
        // They begin to run at once, and are to see all rows.
        let not_made = schema::ensure_queries(&mut self.to, &queries)?;
        let arrived = self.report(&differences, values);
        let users_failed = users::copy(&mut self.from, &mut self.to, passwords)?;
        Ok(arrived && not_made == 0 && users_failed == 0)
    }

    /// Copies one measurement of one policy.
    fn copy(&mut self, db: &str, policy: &str, layout: &Layout) -> Result<()> {
        let place = (db, policy, layout.measurement.as_str());
        let slices = self.shards.slices(&mut self.from, place, &self.options.window)?;
        for (at, slice) in slices.iter().enumerate() {
            if self.state.is_done(place, *slice)? {
                continue;
            }
            let context = || format!("{db}.{policy}.{}, {}", place.2, slice.condition());
            let copied = self.copy_slice((db, policy), layout, *slice);
            let (points, written) = copied.with_context(context)?;
            self.written.add(&written);
            if slice.last_ns < self.started_ns && written.rejected == written.expired {
                self.state.set_done(place, *slice)?;
            }
            let all = slices.len();
            let what = || format!("{db}.{policy}.{}: slice {} of {all}", place.2, at + 1);
            self.progress.add(points, what);
        }
        Ok(())
    }

    /// Copies a slice; the number of its rows, and what became of them.
    fn copy_slice(
        &mut self,
        place: (&str, &str),
        layout: &Layout,
        slice: Slice,
    ) -> Result<(u64, Written)> {
        let target = Target {
            database: place.0.to_owned(),
            policy: place.1.to_owned(),
            ..Target::default()
        };
        let mut waits = WAITS_S.iter();
        loop {
            let limit = self.options.lines_per_second_max;
            let mut writer = LineWriter::new(&mut self.to, target.clone(), limit);
            let mut line = Vec::new();
            let read = read_slice(&mut self.from, place, layout, slice, &mut |row| {
                line_of(&layout.measurement, row, &mut line);
                writer.add(&line)
            });
            let failed = match read {
                Ok(points) => {
                    writer.flush()?;
                    return Ok((points, writer.written().clone()));
                }
                Err(error) => error,
            };
            match waits.next() {
                Some(seconds) if is_broken_connection(&failed) => {
                    say(&format!("again in {seconds} s: {failed:#}"));
                    thread::sleep(Duration::from_secs(*seconds));
                }
                _ => return Err(failed),
            }
        }
    }

    fn verify(&mut self, db: &str, policy: &Policy, layout: &Layout) -> Result<(Vec<String>, u64)> {
        let place = (db, policy.name.as_str(), layout.measurement.as_str());
        // What is older than the policy keeps may be there and not here.
        let mut window = self.options.window;
        if let Some(kept_from_ns) = policy.kept_from_ns()? {
            window = Window { first_ns: window.first_ns.max(kept_from_ns), ..window };
        }
        let slices = self.shards.slices(&mut self.from, place, &window)?;
        verify::compare(&mut self.from, &mut self.to, (db, &policy.name), layout, &slices)
    }

    fn report(&self, differences: &[String], values: u64) -> bool {
        for reason in &self.written.reasons {
            say(&format!("rejected: {reason}"));
        }
        for difference in differences {
            say(&format!("differs: {difference}"));
        }
        let Written { lines, rejected, expired, .. } = self.written;
        say(&format!("imported {lines} points, {}/s", self.progress.rate()));
        if expired > 0 {
            say(&format!("of them {expired} are older than their retention policy keeps"));
        }
        if rejected > expired {
            say(&format!("of them {} were rejected", rejected - expired));
        }
        if self.options.verify {
            let verdict = if differences.is_empty() { "all" } else { "not all" };
            say(&format!("counted {values} values on the source: {verdict} are here"));
        }
        differences.is_empty() && rejected == expired
    }
}

fn pairs<'p>(
    policies: &'p [Policy],
    layouts: &'p [Layout],
) -> impl Iterator<Item = (&'p Policy, &'p Layout)> {
    policies.iter().flat_map(move |policy| layouts.iter().map(move |layout| (policy, layout)))
}
