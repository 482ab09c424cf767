//! Every measurement that the project publishes, section by section, as one Markdown page.
//!
//! A section is written out as soon as it is done, so that a run that is stopped leaves what it
//! found. What the figures mean, and what is aimed at, is said elsewhere (docs/benchmarks.md).

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::compare::{
    CompareOptions, Settling, append_history, compare, dialect, load_options_of, plots, prepare,
    print_comparison,
};
use crate::load::{LoadReport, load, note};
use crate::query_run::Dialect;
use crate::scans::{Questions, ScansOptions, scans, scans_table};
use crate::system::{Running, System};
use crate::workload::{SECOND_NS, Spec, Workload};

mod ceiling;
mod cold;
mod crowd;
mod growth;
mod large;
mod published;
mod ycsb;

/// Loads of each system in a comparison.
const LOAD_ROUNDS: u32 = 3;
/// How often each question over whole columns is asked.
const SCAN_REPEATS: u32 = 11;

/// Parts of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// cpu-only over 100 hosts: load, size and queries, every system.
    Queries,
    /// Questions over whole columns of the same data: QuestDB, ClickHouse and Nyala.
    Scans,
    /// Questions over trucks: InfluxDB, QuestDB and Nyala.
    Trucks,
    /// devops, iot and cpu-only over 4000 hosts: loads, every system.
    Shapes,
    /// The drivers against a server that does nothing.
    Ceiling,
    /// Many series: 4 M and 40 M metrics, 40 M series of one field.
    Series,
    /// 4000 hosts for three days, settled, with queries.
    Published,
    /// Single rows and small batches of text under pressure.
    Ycsb,
    /// Many connections that write, every system.
    Crowd,
    /// The first question after a start with nothing in memory, every system; as root.
    Cold,
    /// Cost of a value as data and series grow; of the loads of the sections before it.
    Growth,
}

impl Section {
    /// Every section with its name on the command line, in their order on the page.
    pub const ALL: [(&'static str, Self); 11] = [
        ("queries", Self::Queries),
        ("scans", Self::Scans),
        ("trucks", Self::Trucks),
        ("shapes", Self::Shapes),
        ("ceiling", Self::Ceiling),
        ("series", Self::Series),
        ("published", Self::Published),
        ("ycsb", Self::Ycsb),
        ("crowd", Self::Crowd),
        ("cold", Self::Cold),
        ("growth", Self::Growth),
    ];
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct ReportOptions {
    /// The sections.
    pub sections: Vec<Section>,
    /// The systems to compare with; those that are not installed are left out and named.
    pub peers: Vec<System>,
    /// Nyala.
    pub nyala: System,
    /// How long each query type runs.
    pub query_duration: Duration,
    /// Sizes are divided by this: 1 for the real thing, more to see that everything works.
    pub shrink: u64,
    /// Where the systems put their files.
    pub directory: PathBuf,
    /// The page.
    pub out: PathBuf,
    /// Where plots go.
    pub plots: Option<PathBuf>,
    /// Where Nyala's figures are appended.
    pub history: Option<PathBuf>,
}

/// A load that Nyala took, for the plot of growth.
#[derive(Debug, Clone)]
struct Point {
    series: u64,
    rows: u64,
    values: u64,
    rate: f64,
    cpu_us_per_value: Option<f64>,
    peak_bytes: u64,
}

/// A running system. It stops before its files go.
struct Started {
    server: Running,
    dialect: Dialect,
    directory: tempfile::TempDir,
}

impl Started {
    /// Loads `data` over two connections.
    fn load(&self, data: &Spec) -> Result<LoadReport> {
        load(data, &load_options_of(&self.server, &self.dialect, 2, 10_000))
    }
}

struct Report<'a> {
    options: &'a ReportOptions,
    page: String,
    points: Vec<Point>,
    /// Nyala's figures of the first section, for shares of the ceiling.
    nyala: Option<crate::compare::SystemFigures>,
}

/// Measures everything that is asked for.
///
/// # Errors
/// When a system fails, or a file cannot be written.
pub fn report(options: &ReportOptions) -> Result<()> {
    fs::create_dir_all(&options.directory)
        .with_context(|| format!("cannot make {}", options.directory.display()))?;
    let mut report = Report { options, page: heading(options), points: Vec::new(), nyala: None };
    for section in &options.sections {
        let name = Section::ALL.iter().find(|(_, known)| known == section).map_or("", |(n, _)| *n);
        note(&format!("==== {name}"));
        match section {
            Section::Queries => report.queries(),
            Section::Scans => report.scans(),
            Section::Trucks => report.trucks(),
            Section::Shapes => report.shapes(),
            Section::Ceiling => report.ceiling(),
            Section::Series => report.series(),
            Section::Published => report.published(),
            Section::Ycsb => report.ycsb(),
            Section::Crowd => report.crowd(),
            Section::Cold => report.cold(),
            Section::Growth => report.growth(),
        }
        .with_context(|| format!("section {name}"))?;
        fs::write(&options.out, &report.page)
            .with_context(|| format!("cannot write {}", options.out.display()))?;
    }
    Ok(())
}

fn heading(options: &ReportOptions) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut out = format!(
        "# Measurements\n\nWritten by `bench report` on {} ({} cores); not edited by hand. What it says is \
         explained in [benchmarks.md](../benchmarks.md).\n",
        jiff::Zoned::now().date(),
        cores
    );
    if options.shrink > 1 {
        out.push_str(&format!("\n**Sizes are divided by {}: no real figures.**\n", options.shrink));
    }
    out
}

impl Report<'_> {
    fn push(&mut self, text: &str) {
        self.page.push_str(text);
    }

    fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.page.push('|');
        for cell in cells {
            write!(self.page, " {} |", cell.as_ref()).expect("BUG: text can grow");
        }
        self.page.push('\n');
    }

    fn systems(&self) -> Vec<System> {
        self.options.peers.iter().chain([&self.options.nyala]).cloned().collect()
    }

    /// Hosts or trucks, made fewer in a trial run.
    fn scale(&self, scale: u64) -> u64 {
        (scale / self.options.shrink).max(10)
    }

    /// How long systems may settle: in a trial run until what was written can be read.
    fn settling(&self) -> Settling {
        let patient = Settling::PATIENT;
        let trial = Settling { at_most: Duration::from_secs(5), ..patient };
        if self.options.shrink > 1 { trial } else { patient }
    }

    fn comparison(&self, data: Spec, asks: bool, settling: Settling) -> CompareOptions {
        CompareOptions {
            data,
            load_workers: 2,
            batch_rows: 10_000,
            load_rounds: LOAD_ROUNDS,
            query_workers: if asks { vec![2, 4] } else { Vec::new() },
            query_duration: self.options.query_duration,
            settling,
            systems: self.systems(),
            directory: Some(self.options.directory.clone()),
        }
    }

    fn remember(&mut self, series: u64, load: &LoadReport) {
        self.points.push(Point {
            series,
            rows: load.sent.rows,
            values: load.sent.values,
            rate: load.rate(),
            cpu_us_per_value: load.cpu_us_per_value(),
            peak_bytes: load.usage.map_or(0, |(_, after)| after.resident_peak_bytes),
        });
    }

    fn remember_nyala(&mut self, comparison: &crate::compare::Comparison) {
        let name = self.options.nyala.name();
        if let Some(nyala) = comparison.systems.iter().find(|system| system.name == name) {
            self.remember(comparison.data.scale, &nyala.load);
        }
    }

    fn queries(&mut self) -> Result<()> {
        let data = Spec::cpu_only(self.scale(100), 72);
        let found = compare(&self.comparison(data, true, self.settling()))?;
        self.push("\n## 100 hosts, three days\n\n");
        self.push(&print_comparison(&found));
        if let Some(directory) = &self.options.plots {
            plots(&found, directory)?;
        }
        if let Some(path) = &self.options.history {
            append_history(&found, path)?;
        }
        self.remember_nyala(&found);
        let name = self.options.nyala.name();
        self.nyala = found.systems.into_iter().find(|system| system.name == name);
        Ok(())
    }

    fn scans(&mut self) -> Result<()> {
        let long = Spec::cpu_only(self.scale(100), 72);
        let short = Spec::cpu_only(self.scale(400_000), 1);
        let short = Spec { step_ns: 600 * SECOND_NS, ..short };
        let asks = |system: &System| {
            matches!(system, System::QuestDb(_) | System::ClickHouse | System::Nyala(_))
        };
        for (title, data, questions) in [
            ("Whole columns of 100 hosts, three days", long, Questions::Long),
            ("Whole columns of 400,000 hosts, six rows each", short, Questions::Short),
        ] {
            self.questions(title, data, questions, asks)?;
        }
        Ok(())
    }

    fn trucks(&mut self) -> Result<()> {
        // In a trial run as well: few of them come by every place that is asked about.
        let data = Spec { workload: Workload::Iot, ..Spec::cpu_only(100, 72) };
        let asks = |system: &System| {
            matches!(system, System::InfluxDb | System::QuestDb(_) | System::Nyala(_))
        };
        self.questions("Questions about 100 trucks, three days", data, Questions::Trucks, asks)
    }

    fn questions(
        &mut self,
        title: &str,
        data: Spec,
        questions: Questions,
        asks: impl Fn(&System) -> bool,
    ) -> Result<()> {
        let systems = self.systems().into_iter();
        let systems = systems.filter(|system| asks(system) && system.is_installed()).collect();
        let options = ScansOptions { data, questions, systems, repeats: SCAN_REPEATS };
        let figures = scans(&options)?;
        self.push(&format!("\n## {title}\n\n"));
        self.push(&scans_table(&options.systems, &figures));
        Ok(())
    }

    fn shapes(&mut self) -> Result<()> {
        let settling = self.settling();
        let at_once = Settling { at_most: Duration::ZERO, ..settling };
        for (title, workload, scale, hours, settling) in [
            ("devops, 100 hosts, 6 h", Workload::Devops, 100, 6, settling),
            ("iot, 100 trucks, 24 h", Workload::Iot, 100, 24, settling),
            // Its size is that of 100 hosts.
            (
                "cpu-only, 4000 hosts, 2 h, right after the load",
                Workload::CpuOnly,
                4000,
                2,
                at_once,
            ),
        ] {
            let data = Spec { workload, ..Spec::cpu_only(self.scale(scale), hours) };
            let found = compare(&self.comparison(data, false, settling))?;
            self.push(&format!("\n## {title}\n\n"));
            self.push(&print_comparison(&found));
            if workload == Workload::CpuOnly {
                self.remember_nyala(&found);
            }
        }
        Ok(())
    }

    /// Writes a plot and refers to it.
    fn plot(&mut self, name: &str, title: &str, svg: &str) -> Result<()> {
        let Some(directory) = &self.options.plots else { return Ok(()) };
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        let path = directory.join(name);
        fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
        self.push(&format!("\n![{title}]({name})\n"));
        Ok(())
    }

    /// Starts a system in a private directory, ready to take rows.
    fn start(&self, system: &System) -> Result<Started> {
        let directory = tempfile::tempdir_in(&self.options.directory)
            .context("no place for the server's files")?;
        let server = system.start(directory.path())?;
        let dialect = dialect(system);
        prepare(&server, &dialect)?;
        Ok(Started { server, dialect, directory })
    }
}

/// Megabytes of some bytes.
fn megabytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / 1e6)
}

fn millions(number: f64) -> String {
    format!("{:.2}", number / 1e6)
}

fn optional(figure: Option<f64>, digits: usize) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.digits$}"))
}

/// Disk space of a directory per value.
fn per_value(directory: &Path, values: u64) -> Result<f64> {
    Ok(crate::process::disk_bytes(directory)? as f64 / values as f64)
}
