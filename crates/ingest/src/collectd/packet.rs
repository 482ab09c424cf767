//! From bytes to lists of values.

/// Kinds of parts.
mod kind {
    pub(super) const HOST: u16 = 0x0000;
    pub(super) const TIME: u16 = 0x0001;
    pub(super) const PLUGIN: u16 = 0x0002;
    pub(super) const PLUGIN_INSTANCE: u16 = 0x0003;
    pub(super) const TYPE: u16 = 0x0004;
    pub(super) const TYPE_INSTANCE: u16 = 0x0005;
    pub(super) const VALUES: u16 = 0x0006;
    pub(super) const TIME_FINE: u16 = 0x0008;
    pub(super) const ENCRYPTED: u16 = 0x0210;
}

/// Type and length of a part.
const HEADER_BYTES: usize = 4;

/// Why a packet is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// A part is longer than the packet, or shorter than what it must hold.
    #[error("a part of a wrong length")]
    Length,
    /// A text is not UTF-8, or has no end.
    #[error("a part that is no text")]
    Text,
    /// A time is beyond what can be stored.
    #[error("a time out of range")]
    Time,
    /// A value has a type that is none.
    #[error("a value of an unknown kind")]
    Kind,
    /// The packet is encrypted.
    #[error("an encrypted packet")]
    Encrypted,
}

/// One number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Counter(u64),
    Gauge(f64),
    Derive(i64),
    Absolute(u64),
}

impl Value {
    pub(super) fn as_float(&self) -> f64 {
        match self {
            Self::Counter(value) | Self::Absolute(value) => *value as f64,
            Self::Gauge(value) => *value,
            Self::Derive(value) => *value as f64,
        }
    }
}

/// Values that belong together, and what holds for them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ValueList {
    pub(super) host: String,
    pub(super) plugin: String,
    pub(super) plugin_instance: String,
    pub(super) type_name: String,
    pub(super) type_instance: String,
    pub(super) time_ns: Option<i64>,
    pub(super) values: Vec<Value>,
}

/// All lists of a packet.
pub(super) fn parse(packet: &[u8]) -> Result<Vec<ValueList>, PacketError> {
    let (mut lists, mut state, mut rest) = (Vec::new(), ValueList::default(), packet);
    while !rest.is_empty() {
        let (kind, body, behind) = part(rest)?;
        rest = behind;
        match kind {
            kind::HOST => state.host = text(body)?,
            kind::PLUGIN => state.plugin = text(body)?,
            kind::PLUGIN_INSTANCE => state.plugin_instance = text(body)?,
            kind::TYPE => state.type_name = text(body)?,
            kind::TYPE_INSTANCE => state.type_instance = text(body)?,
            kind::TIME => state.time_ns = Some(seconds_ns(number(body)?)?),
            kind::TIME_FINE => state.time_ns = Some(fine_ns(number(body)?)?),
            kind::VALUES => lists.push(ValueList { values: values(body)?, ..state.clone() }),
            kind::ENCRYPTED => return Err(PacketError::Encrypted),
            // Intervals, notifications, signatures, and what is new.
            _ => {}
        }
    }
    Ok(lists)
}

/// Kind and body of the first part, and what is behind it.
fn part(bytes: &[u8]) -> Result<(u16, &[u8], &[u8]), PacketError> {
    let (header, _) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(PacketError::Length)?;
    let [k0, k1, l0, l1] = *header;
    let len = usize::from(u16::from_be_bytes([l0, l1]));
    if len < HEADER_BYTES || len > bytes.len() {
        return Err(PacketError::Length);
    }
    let (part, behind) = bytes.split_at(len);
    Ok((u16::from_be_bytes([k0, k1]), &part[HEADER_BYTES..], behind))
}

/// A text ends with a zero byte.
fn text(body: &[u8]) -> Result<String, PacketError> {
    let (last, text) = body.split_last().ok_or(PacketError::Text)?;
    let text = std::str::from_utf8(text).map_err(|_| PacketError::Text)?;
    if *last != 0 || text.contains('\0') {
        return Err(PacketError::Text);
    }
    Ok(text.to_owned())
}

fn number(body: &[u8]) -> Result<u64, PacketError> {
    Ok(u64::from_be_bytes(body.try_into().map_err(|_| PacketError::Length)?))
}

fn seconds_ns(seconds: u64) -> Result<i64, PacketError> {
    let seconds = i64::try_from(seconds).map_err(|_| PacketError::Time)?;
    seconds.checked_mul(1_000_000_000).ok_or(PacketError::Time)
}

/// A time in units of 2^-30 s.
fn fine_ns(units: u64) -> Result<i64, PacketError> {
    let ns = (u128::from(units) * 1_000_000_000) >> 30;
    i64::try_from(ns).map_err(|_| PacketError::Time)
}

/// Number of values, their kinds, then eight bytes each.
fn values(body: &[u8]) -> Result<Vec<Value>, PacketError> {
    let (count, rest) = body.split_first_chunk::<2>().ok_or(PacketError::Length)?;
    let count = usize::from(u16::from_be_bytes(*count));
    if rest.len() != count * 9 {
        return Err(PacketError::Length);
    }
    let (kinds, numbers) = rest.split_at(count);
    let (numbers, _) = numbers.as_chunks::<8>();
    let value = |(kind, bytes): (&u8, &[u8; 8])| {
        Ok(match kind {
            0 => Value::Counter(u64::from_be_bytes(*bytes)),
            1 => Value::Gauge(f64::from_le_bytes(*bytes)),
            2 => Value::Derive(i64::from_be_bytes(*bytes)),
            3 => Value::Absolute(u64::from_be_bytes(*bytes)),
            _ => return Err(PacketError::Kind),
        })
    };
    kinds.iter().zip(numbers).map(value).collect()
}
