//! collectd's binary protocol: packets of parts, each with a type and a length. Parts that name
//! something (host, plugin, time) hold for the values behind them.
//!
//! A packet that is malformed anywhere gives no points at all. With passwords signatures are verified
//! and what is encrypted is read; without them signatures mean nothing, and what is encrypted is refused.
//! Values that share long names become many times their own bytes: of what a
//! packet becomes there is a limit, beyond which its values are dropped.

mod packet;
mod security;
mod types;

pub use packet::PacketError;
pub use security::{SecurityLevel, Users};
pub use types::TypesDb;

use crate::point::Lines;
use packet::{Value, ValueList};

/// Lines that one packet may become, bytes, give or take a line. Real packets are far from it.
const PACKET_LINES_BYTES_MAX: usize = 1 << 20;

/// What becomes of a value that has several numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MultiValue {
    /// A point for each, in a measurement of its own.
    #[default]
    Split,
    /// One point with a field for each.
    Join,
}

/// How packets become points.
#[derive(Clone, Debug, Default)]
pub struct CollectdParser {
    types: TypesDb,
    multi_value: MultiValue,
    level: SecurityLevel,
    users: Option<Users>,
}

impl CollectdParser {
    /// A parser that knows these types.
    #[must_use]
    pub fn new(types: TypesDb, multi_value: MultiValue) -> Self {
        Self { types, multi_value, ..Self::default() }
    }

    /// The same parser, which stores only values of at least this level and knows these users.
    #[must_use]
    pub fn secured(self, level: SecurityLevel, users: Users) -> Self {
        Self { level, users: Some(users), ..self }
    }

    /// Reads a packet and adds its points; returns how many values could not be stored: without a
    /// time, of unknown types or not as many as their type has, no numbers, not secure enough, beyond what
    /// one packet may become.
    ///
    /// # Errors
    /// [`PacketError`]: nothing was added.
    pub fn parse(&self, packet: &[u8], lines: &mut Lines) -> Result<u64, PacketError> {
        let sections = security::open(packet, self.users.as_ref())?;
        for section in &sections {
            packet::parse(&section.parts, |_| {})?;
        }
        let mut dropped = 0;
        let end_bytes = lines.bytes().saturating_add(PACKET_LINES_BYTES_MAX);
        for section in &sections {
            let is_secure = section.level >= self.level;
            packet::parse(&section.parts, |list| {
                dropped += match (self.types.names(list), list.time_ns) {
                    (Some(names), Some(time_ns))
                        if is_secure && names.len() == list.values.len() =>
                    {
                        self.push(list, &names, time_ns, &mut Bounded { lines, end_bytes })
                    }
                    _ => 1,
                };
            })?;
        }
        Ok(dropped)
    }

    fn push(
        &self,
        list: &ValueList<'_>,
        names: &[String],
        time_ns: i64,
        lines: &mut Bounded<'_>,
    ) -> u64 {
        let tags = [
            ("host", list.host),
            ("instance", list.plugin_instance),
            ("type", list.type_name),
            ("type_instance", list.type_instance),
        ];
        let values = list.values.iter().map(Value::as_float);
        match self.multi_value {
            MultiValue::Join => {
                let fields = names.iter().map(String::as_str).zip(values);
                u64::from(!lines.push(list.plugin, tags, fields, time_ns))
            }
            MultiValue::Split => {
                let mut dropped = 0;
                for (name, value) in names.iter().zip(values) {
                    let measurement = format!("{}_{name}", list.plugin);
                    let pushed = lines.push(&measurement, tags, [("value", value)], time_ns);
                    dropped += u64::from(!pushed);
                }
                dropped
            }
        }
    }
}

/// Lines, up to a length.
struct Bounded<'l> {
    lines: &'l mut Lines,
    end_bytes: usize,
}

impl Bounded<'_> {
    /// Adds a point; says whether it did.
    fn push<'a>(
        &mut self,
        measurement: &str,
        tags: [(&'a str, &'a str); 4],
        fields: impl IntoIterator<Item = (&'a str, f64)>,
        time_ns: i64,
    ) -> bool {
        self.lines.bytes() < self.end_bytes
            && self.lines.push(measurement, tags, fields, time_ns).is_ok()
    }
}

#[cfg(test)]
mod tests;
