//! What a decoder says about bytes that are not a page.

/// Why a page could not be decoded.
///
/// `RangeOutOfBounds` and `CountTooLarge` are the caller's mistake; everything else means that the
/// bytes are damaged, or that the count passed in is not the count that was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end before the page does.
    #[error("page ends early: {needed} more bytes expected")]
    Truncated {
        /// How many bytes are missing at the place where reading stopped.
        needed: u64,
    },
    /// The first byte names no encoding of the requested type.
    #[error("encoding {id:#04x} is not an encoding of {expected}")]
    WrongEncoding {
        /// The first byte of the page.
        id: u8,
        /// The type that was asked for.
        expected: &'static str,
    },
    /// A field of the page contradicts the format.
    #[error("damaged page: {0}")]
    Corrupt(&'static str),
    /// Bytes are left over after the last field.
    #[error("damaged page: {0} bytes after its end")]
    TrailingBytes(usize),
    /// More values were asked for than a page can hold.
    #[error("a page holds at most {max} values, {count} were asked for", max = crate::PAGE_COUNT_MAX)]
    CountTooLarge {
        /// The count passed in.
        count: usize,
    },
    /// The requested rows are not inside the page.
    #[error("rows {start}..{end} asked for, the page holds {count}")]
    RangeOutOfBounds {
        /// First row asked for.
        start: usize,
        /// One past the last row asked for.
        end: usize,
        /// Number of rows in the page.
        count: usize,
    },
    /// The decoded strings would be larger than the caller allows.
    #[error("strings of {bytes} bytes exceed the limit of {max} bytes given by the caller")]
    TooManyBytes {
        /// Decoded size, as far as it is known.
        bytes: u64,
        /// The limit passed in.
        max: u64,
    },
}

pub(crate) type Result<T> = std::result::Result<T, DecodeError>;

/// Checks what every decoder is given by its caller.
pub(crate) fn check_range(range: &std::ops::Range<usize>, count: usize) -> Result<()> {
    if count > crate::PAGE_COUNT_MAX {
        return Err(DecodeError::CountTooLarge { count });
    }
    if range.start > range.end || range.end > count {
        return Err(DecodeError::RangeOutOfBounds { start: range.start, end: range.end, count });
    }
    Ok(())
}
