//! The drivers against a server that does nothing.

use anyhow::{Context, Result};

use super::{Report, Started, millions, optional};
use crate::queries::TSBS_TYPES;
use crate::query_run::{QueryOptions, run};
use crate::system::System;
use crate::workload::Spec;

impl Report<'_> {
    pub(super) fn ceiling(&mut self) -> Result<()> {
        let data = Spec::cpu_only(self.scale(100), 72);
        let nothing = self.start(&System::Discard)?;
        let loaded = nothing.load(&data)?;
        let Started { server, dialect, .. } = &nothing;
        let nyala = self.nyala.clone();
        let reached = nyala.as_ref().map(|nyala| nyala.load.rate());
        self.push("\n## The drivers against a server that does nothing\n\n");
        self.row(["", "reads and forgets", "Nyala", "share"]);
        self.row(["---", "---", "---", "---"]);
        self.row([
            "load, 2 connections, M values/s".to_owned(),
            millions(loaded.rate()),
            reached.map_or_else(|| "-".to_owned(), millions),
            optional(reached.map(|rate| rate / loaded.rate()), 2),
        ]);
        let (name, query_type) = TSBS_TYPES[0];
        for workers in [2, 4] {
            let asked =
                QueryOptions::of(server, dialect, workers, self.options.query_duration, data.seed);
            let ceiling =
                run(query_type, &data, &asked)?.context("BUG: InfluxQL asks everything")?;
            let of_nyala = nyala.as_ref().and_then(|nyala| {
                let same =
                    |q: &&crate::compare::QueryFigures| q.name == name && q.workers == workers;
                Some(nyala.queries.iter().find(same)?.report.as_ref()?.rate())
            });
            self.row([
                format!("answers of the size of {name}, {workers} connections, 1/s"),
                format!("{:.0}", ceiling.rate()),
                optional(of_nyala, 0),
                optional(of_nyala.map(|rate| rate / ceiling.rate()), 2),
            ]);
        }
        Ok(())
    }
}
