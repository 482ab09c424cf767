//! collectd's binary protocol: packets of parts, each with a type and a length. Parts that name
//! something (host, plugin, time) hold for the values behind them.
//!
//! A packet that is malformed anywhere gives no points at all. Signatures are not verified; what is
//! encrypted is refused.

mod packet;
mod types;

pub use packet::PacketError;
pub use types::TypesDb;

use crate::point::Lines;
use packet::{Value, ValueList};

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
}

impl CollectdParser {
    /// A parser that knows these types.
    #[must_use]
    pub fn new(types: TypesDb, multi_value: MultiValue) -> Self {
        Self { types, multi_value }
    }

    /// Reads a packet and adds its points; returns how many values could not be stored: without a
    /// time, of unknown types or not as many as their type has, no numbers.
    ///
    /// # Errors
    /// [`PacketError`]: nothing was added.
    pub fn parse(&self, packet: &[u8], lines: &mut Lines) -> Result<u64, PacketError> {
        let mut dropped = 0;
        for list in packet::parse(packet)? {
            dropped += match (self.types.names(&list), list.time_ns) {
                (Some(names), Some(time_ns)) if names.len() == list.values.len() => {
                    self.push(&list, &names, time_ns, lines)
                }
                _ => 1,
            };
        }
        Ok(dropped)
    }

    fn push(&self, list: &ValueList, names: &[String], time_ns: i64, lines: &mut Lines) -> u64 {
        let tags = [
            ("host", list.host.as_str()),
            ("instance", list.plugin_instance.as_str()),
            ("type", list.type_name.as_str()),
            ("type_instance", list.type_instance.as_str()),
        ];
        let values = list.values.iter().map(Value::as_float);
        match self.multi_value {
            MultiValue::Join => {
                let fields = names.iter().map(String::as_str).zip(values);
                u64::from(lines.push(&list.plugin, tags, fields, time_ns).is_err())
            }
            MultiValue::Split => {
                let mut dropped = 0;
                for (name, value) in names.iter().zip(values) {
                    let measurement = format!("{}_{name}", list.plugin);
                    let pushed = lines.push(&measurement, tags, [("value", value)], time_ns);
                    dropped += u64::from(pushed.is_err());
                }
                dropped
            }
        }
    }
}

#[cfg(test)]
mod tests;
