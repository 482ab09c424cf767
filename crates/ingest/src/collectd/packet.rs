//! From bytes to lists of values.
//!
//! Invariant: names are borrowed from the packet and one list is held at a time, so that a packet
//! takes little more memory than its bytes, however many lists share its names.

/// Kinds of parts.
pub(super) mod kind {
    pub(super) const HOST: u16 = 0x0000;
    pub(super) const TIME: u16 = 0x0001;
    pub(super) const PLUGIN: u16 = 0x0002;
    pub(super) const PLUGIN_INSTANCE: u16 = 0x0003;
    pub(super) const TYPE: u16 = 0x0004;
    pub(super) const TYPE_INSTANCE: u16 = 0x0005;
    pub(super) const VALUES: u16 = 0x0006;
    pub(super) const TIME_FINE: u16 = 0x0008;
    pub(in super::super) const SIGNATURE: u16 = 0x0200;
    pub(in super::super) const ENCRYPTED: u16 = 0x0210;
}

/// Type and length of a part.
const HEADER_BYTES: usize = 4;
/// Longest name, bytes, with the zero byte behind it: collectd itself has none longer.
pub(super) const NAME_BYTES_MAX: usize = 128;

/// Why a packet is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// A part is longer than the packet, or shorter than what it must hold.
    #[error("a part of a wrong length")]
    Length,
    /// A text is not UTF-8, has no end, or is longer than collectd's are.
    #[error("a part that is no text, or one that is too long")]
    Text,
    /// A time is beyond what can be stored.
    #[error("a time out of range")]
    Time,
    /// A value has a type that is none.
    #[error("a value of an unknown kind")]
    Kind,
    /// The packet is encrypted, and no passwords are known.
    #[error("an encrypted packet")]
    Encrypted,
    /// Nobody knows the password of who signed or encrypted it.
    #[error("a packet of an unknown user")]
    User,
    /// What was signed or encrypted is not what came, or the password is another.
    #[error("a packet with a wrong signature")]
    Signature,
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
pub(super) struct ValueList<'p> {
    pub(super) host: &'p str,
    pub(super) plugin: &'p str,
    pub(super) plugin_instance: &'p str,
    pub(super) type_name: &'p str,
    pub(super) type_instance: &'p str,
    pub(super) time_ns: Option<i64>,
    pub(super) values: Vec<Value>,
}

/// Gives all lists of a packet to `each`, in their order. Signatures mean nothing here.
pub(super) fn parse<'p>(
    packet: &'p [u8],
    mut each: impl FnMut(&ValueList<'p>),
) -> Result<(), PacketError> {
    let (mut list, mut rest) = (ValueList::default(), packet);
    while !rest.is_empty() {
        let (kind, body, behind) = part(rest)?;
        rest = behind;
        match kind {
            kind::HOST => list.host = text(body)?,
            kind::PLUGIN => list.plugin = text(body)?,
            kind::PLUGIN_INSTANCE => list.plugin_instance = text(body)?,
            kind::TYPE => list.type_name = text(body)?,
            kind::TYPE_INSTANCE => list.type_instance = text(body)?,
            kind::TIME => list.time_ns = Some(seconds_ns(number(body)?)?),
            kind::TIME_FINE => list.time_ns = Some(fine_ns(number(body)?)?),
            kind::VALUES => {
                list.values = values(body)?;
                each(&list);
            }
            kind::ENCRYPTED => return Err(PacketError::Encrypted),
            // Intervals, notifications, signatures, and what is new.
            _ => {}
        }
    }
    Ok(())
}

/// Kind and body of the first part, and what is behind it.
pub(super) fn part(bytes: &[u8]) -> Result<(u16, &[u8], &[u8]), PacketError> {
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
fn text(body: &[u8]) -> Result<&str, PacketError> {
    let (last, text) = body.split_last().ok_or(PacketError::Text)?;
    let text = std::str::from_utf8(text).map_err(|_| PacketError::Text)?;
    if *last != 0 || text.contains('\0') || body.len() > NAME_BYTES_MAX {
        return Err(PacketError::Text);
    }
    Ok(text)
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
