//! Random histories from a seed.

use crate::operation::{Fault, Kind, Operation, Row, Trouble};
use crate::pool::{HOURS, MEASUREMENT_COUNT, SERIES, STEPS};
use crate::random::Random;

/// What a history is mostly about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Theme {
    /// Crashes, and nothing else goes wrong.
    Crashes,
    /// Operations of the disk fail.
    Faults,
    /// The disk is full at times.
    Full,
    /// Many changes, few crashes: segments, merges and tombstones gather.
    Ageing,
}

/// A history of about `length` operations.
pub(crate) fn history(seed: u64, length: usize) -> Vec<Operation> {
    let mut random = Random::new(seed);
    let themes = [Theme::Crashes, Theme::Crashes, Theme::Faults, Theme::Full, Theme::Ageing];
    let theme = random.pick(&themes);
    let mut generator = Generator { random, theme };
    let mut operations = Vec::with_capacity(length + 2);
    if generator.random.chance(20) {
        // The directory is empty yet: making a store is interrupted.
        operations.push(generator.crash());
    }
    operations.extend((0..length).map(|_| generator.operation()));
    operations
}

/// Operations that nothing goes wrong in, for who adds that.
pub(crate) fn calm(seed: u64, length: usize) -> Vec<Operation> {
    let mut generator = Generator { random: Random::new(seed), theme: Theme::Ageing };
    (0..length).map(|_| generator.change()).collect()
}

struct Generator {
    random: Random,
    theme: Theme,
}

impl Generator {
    fn operation(&mut self) -> Operation {
        let trouble = match self.theme {
            Theme::Crashes => 14,
            Theme::Faults | Theme::Full => 18,
            Theme::Ageing => 4,
        };
        if self.random.chance(trouble) { self.trouble() } else { self.change() }
    }

    fn trouble(&mut self) -> Operation {
        let crash = self.random.chance(40);
        match self.theme {
            Theme::Crashes | Theme::Ageing if crash => self.crash(),
            Theme::Crashes | Theme::Ageing => Operation::Begin(self.power_loss()),
            _ if self.random.chance(25) => self.crash(),
            _ if self.random.chance(20) => Operation::EndFaults,
            Theme::Full => Operation::Begin(Trouble::Full(self.random.below(300_000) as u32)),
            Theme::Faults => Operation::Begin(self.fault()),
        }
    }

    fn power_loss(&mut self) -> Trouble {
        Trouble::PowerLossAfter(self.random.below(80) as u16)
    }

    fn fault(&mut self) -> Trouble {
        let kinds = [Kind::Write, Kind::TornWrite, Kind::Sync, Kind::Read, Kind::Names];
        let kind = self.random.pick(&kinds);
        let fault = match self.random.below(4) {
            0 => Fault::OneIn(self.random.between(2, 40)),
            1 => Fault::From(self.random.between(1, 30)),
            _ => Fault::Nth(self.random.between(1, 30)),
        };
        Trouble::Fail(kind, fault)
    }

    fn crash(&mut self) -> Operation {
        let mut again = Vec::new();
        while again.len() < 4 && self.random.chance(35) {
            again.push(match self.theme {
                Theme::Faults => self.fault(),
                Theme::Full if self.random.chance(50) => {
                    Trouble::Full(self.random.below(100_000) as u32)
                }
                _ => Trouble::PowerLossAfter(self.random.below(40) as u16),
            });
        }
        Operation::Crash { kill: self.random.chance(25), again }
    }

    fn change(&mut self) -> Operation {
        match self.random.below(100) {
            0..34 => self.write(),
            34..46 => self.bulk(),
            46..50 => self.delete_rows(),
            50..54 => self.delete_matching(),
            54..56 => {
                let (database, measurement) = (self.database(), self.measurement());
                Operation::DeleteMeasurement { database, measurement }
            }
            56..57 => Operation::DeletePolicy { policy: self.policy() },
            57..59 => Operation::DeleteDatabase { database: self.database() },
            59..61 => Operation::Expire { policy: self.policy(), before: self.time() },
            61..62 => Operation::DropPartition { policy: self.policy(), time: self.time() },
            62..66 => self.swap_catalog(),
            66..80 => Operation::Flush,
            80..86 => Operation::Maintain,
            86..90 => Operation::Settle,
            90..95 => Operation::Check,
            95..97 => Operation::CheckWhileReadsFail(self.random.between(2, 30) as u16),
            _ => Operation::Reopen,
        }
    }

    fn policy(&mut self) -> u8 {
        self.random.below(3) as u8
    }

    fn database(&mut self) -> u8 {
        self.random.below(2) as u8
    }

    fn measurement(&mut self) -> u8 {
        self.random.below(u64::from(MEASUREMENT_COUNT)) as u8
    }

    fn time(&mut self) -> u16 {
        let hour = match self.random.below(4) {
            // Most rows are of the same two hours.
            0 => self.random.below(u64::from(HOURS)) as u16,
            _ => 4 + self.random.below(2) as u16,
        };
        hour * STEPS + self.random.below(u64::from(STEPS)) as u16
    }

    fn row(&mut self) -> Row {
        let time = match self.random.below(200) {
            0 => u16::MAX,
            1 => u16::MAX - 1,
            _ => self.time(),
        };
        let mut fields = self.random.below(32) as u8;
        if self.random.chance(4) {
            fields |= 1 << (5 + self.random.below(2));
        }
        Row {
            series: self.random.below(u64::from(SERIES)) as u8,
            time,
            fields,
            value: self.random.below(100_000) as u32,
        }
    }

    fn write(&mut self) -> Operation {
        let rows = if self.random.chance(15) { 40 } else { self.random.between(1, 8) };
        Operation::Write { policy: self.policy(), rows: (0..rows).map(|_| self.row()).collect() }
    }

    fn bulk(&mut self) -> Operation {
        let spread = self.random.chance(30);
        let rows = if spread { self.random.between(2, 60) } else { self.random.between(20, 600) };
        let mut first = self.row();
        first.time = self.time();
        Operation::Bulk { policy: self.policy(), first, rows: rows as u16, spread }
    }

    fn delete_rows(&mut self) -> Operation {
        Operation::DeleteRows {
            database: self.database(),
            measurement: self.random.chance(60).then(|| self.measurement()),
            host: self.random.chance(50).then(|| self.random.below(4) as u8),
            times: self.random.chance(75).then(|| (self.time(), self.time())),
        }
    }

    fn delete_matching(&mut self) -> Operation {
        Operation::DeleteMatching {
            policy: self.policy(),
            measurement: self.measurement(),
            fields: self.random.below(128) as u8,
            one_in: self.random.between(1, 5) as u8,
            stale: self.random.chance(40),
        }
    }

    fn swap_catalog(&mut self) -> Operation {
        let large = self.random.chance(15);
        let bytes = self.random.below(if large { 60_000 } else { 400 }) as u32;
        Operation::SwapCatalog { bytes }
    }
}
