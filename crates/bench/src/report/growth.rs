//! Cost of a value as data and series grow.

use anyhow::Result;

use super::{Point, Report, megabytes, millions, optional};
use crate::plot::{Series, bars};
use crate::workload::{SECOND_NS, Spec};

impl Report<'_> {
    pub(super) fn growth(&mut self) -> Result<()> {
        // Ten and a hundred million values of few series, then few values of ever more series. What
        // other sections loaded goes on from there.
        for (scale, hours) in [(100, 28), (1000, 28)] {
            self.grow(&Spec::cpu_only(self.scale(scale), hours))?;
        }
        for (scale, steps) in [(1000, 2400), (40_000, 60)] {
            let data = Spec::cpu_only(self.scale(scale), 1);
            let step_ns = 60 * SECOND_NS;
            self.grow(&Spec { step_ns, end_ns: data.start_ns + step_ns * steps, ..data })?;
        }
        let mut points = self.points.clone();
        points.sort_by_key(|point| (point.values, point.series));
        self.push(
            "\n## Growth\n\nEvery load of cpu-only rows on this page and some more, by size.\n\n",
        );
        self.row([
            "M values",
            "series",
            "rows a series",
            "M values/s",
            "server CPU, us/value",
            "resident MB at most",
        ]);
        self.row(["---"; 6]);
        for point in &points {
            self.row([
                millions(point.values as f64),
                point.series.to_string(),
                format!("{:.0}", point.rows as f64 / point.series as f64),
                millions(point.rate),
                optional(point.cpu_us_per_value, 3),
                megabytes(point.peak_bytes),
            ]);
        }
        let label =
            |point: &Point| format!("{} M, {} series", point.values / 1_000_000, point.series);
        let labels: Vec<String> = points.iter().map(label).collect();
        let costs = points.iter().map(|point| point.cpu_us_per_value.map(|us| us * 1e3)).collect();
        let series = [Series { name: "Nyala".to_owned(), values: costs }];
        let title = "Processor time of the server per value, ns, as values and series grow";
        self.plot("growth.svg", title, &bars(title, &labels, &series))
    }

    fn grow(&mut self, data: &Spec) -> Result<()> {
        let loaded = self.start(&self.options.nyala)?.load(data)?;
        self.remember(data.scale, &loaded);
        Ok(())
    }
}
