//! Reading the body of a request: bounded in length, memory and time.

mod pieces;

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, EXPECT};
use hyper::{HeaderMap, StatusCode};
use tokio::time::{Instant, timeout};

use crate::app::App;
use crate::error::HttpError;
use crate::gzip::{self, UnpackError};
use crate::room::{Room, START_BYTES};
use pieces::Pieces;

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Not at all.
    Plain,
    /// With gzip.
    Gzip,
    /// With snappy, as one block.
    Snappy,
}

/// What a body may become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    /// Longest body as it comes, bytes.
    bytes_max: usize,
    /// Longest unpacked, bytes.
    unpacked_max: usize,
    packing: Packing,
    /// Memory set aside for it and for what is made of it, as a multiple of its unpacked length.
    memory_factor: usize,
}

/// A whole body, with the room it was given.
#[derive(Debug)]
pub(crate) struct WholeBody {
    pub(crate) bytes: Bytes,
    pub(crate) room: Room,
}

/// A whole body as it came, with the room it was given.
#[derive(Debug)]
pub(crate) struct PiecedBody {
    pub(crate) pieces: Pieces,
    pub(crate) room: Room,
}

/// Text packs so well, where a body does not say; more room is asked for when it turns out to be.
const PACKED_FACTOR: usize = 10;
/// Snappy packs 64 bytes into three at best.
const SNAPPY_RATIO_MAX: usize = 22;

impl BodyLimits {
    /// For a body of which so many times its unpacked length is held.
    pub(crate) fn new(app: &App, memory_factor: usize, packing: Packing) -> Self {
        Self {
            bytes_max: app.config.body_bytes_max(),
            unpacked_max: app.config.unpacked_bytes_max(),
            packing,
            memory_factor,
        }
    }

    /// Memory for a body that has come so far and is to have `len` bytes, and for what is made of it. One that is here
    /// says how long it is unpacked.
    fn memory(&self, pieces: &mut Pieces, len: usize) -> usize {
        let here = (pieces.len() == len).then(|| pieces.only()).flatten();
        let announced = match self.packing {
            Packing::Plain => return len.saturating_mul(self.memory_factor),
            Packing::Gzip => here.and_then(gzip::announced_len),
            Packing::Snappy => here.and_then(|body| {
                let announced = snap::raw::decompress_len(body).ok()?;
                Some(announced.min(len.saturating_mul(SNAPPY_RATIO_MAX)))
            }),
        };
        let unpacked = announced.unwrap_or(len.saturating_mul(PACKED_FACTOR));
        let made = unpacked.min(self.unpacked_max).saturating_mul(self.memory_factor);
        made.saturating_add(len)
    }
}

impl Packing {
    /// Of a body that may be packed with gzip.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let is_gzip = headers
            .get(CONTENT_ENCODING)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"gzip"));
        if is_gzip { Self::Gzip } else { Self::Plain }
    }
}

impl WholeBody {
    /// The same unpacked, with room for so many times its length.
    pub(crate) fn unpacked(self, app: &App, memory_factor: usize) -> Result<Self, HttpError> {
        let Self { bytes, mut room } = self;
        let grow = |bytes: usize| {
            room.grow(bytes.saturating_mul(memory_factor)).map_err(Unpacking::NoRoom)
        };
        let unpacked = gzip::unpack(&bytes, app.config.unpacked_bytes_max(), grow)?;
        Ok(Self { bytes: Bytes::from_owner(unpacked), room })
    }
}

impl PiecedBody {
    /// The same in one place.
    pub(crate) fn joined(self) -> WholeBody {
        WholeBody { bytes: self.pieces.joined(), room: self.room }
    }

    /// What is packed in it, with room for so many times its length; `None` if it does not say that it is at most
    /// `bytes_max` bytes.
    pub(crate) fn unpacked_short(
        &mut self,
        bytes_max: usize,
        memory_factor: usize,
    ) -> Result<Option<Bytes>, HttpError> {
        let Self { pieces, room } = self;
        let Some(packed) = pieces.only() else { return Ok(None) };
        if gzip::announced_len(packed).is_none_or(|len| len > bytes_max) {
            return Ok(None);
        }
        let grow = |bytes: usize| {
            room.grow(bytes.saturating_mul(memory_factor)).map_err(Unpacking::NoRoom)
        };
        match gzip::unpack(packed, bytes_max, grow) {
            // A copy, so that what unpacks is free for the next while this one waits.
            Ok(text) => Ok(Some(Bytes::copy_from_slice(text.as_ref()))),
            Err(Unpacking::Failed(UnpackError::TooLong(_))) => Ok(None),
            Err(why) => Err(why.into()),
        }
    }
}

/// Why unpacking stopped.
enum Unpacking {
    Failed(UnpackError),
    NoRoom(HttpError),
}

impl From<UnpackError> for Unpacking {
    fn from(error: UnpackError) -> Self {
        Self::Failed(error)
    }
}

impl From<Unpacking> for HttpError {
    fn from(why: Unpacking) -> Self {
        match why {
            Unpacking::Failed(UnpackError::TooLong(_)) => Self::too_large(),
            Unpacking::Failed(broken) => Self::bad_request(broken.to_string()),
            Unpacking::NoRoom(refusal) => refusal,
        }
    }
}

/// A slow body has this long, and a second more for each [`BYTES_PER_SECOND_MIN`] that arrived.
const WHOLE_BODY_MIN: Duration = Duration::from_secs(60);
const BYTES_PER_SECOND_MIN: u64 = 16 << 10;

/// A body that is too long is still taken off the wire, up to so much and so long: a client that
/// only looks for an answer when it has sent everything would never see it otherwise.
const DISCARD_BYTES_MAX: usize = 256 << 20;
const DISCARD_TIME_MAX: Duration = Duration::from_secs(5);

/// Reads all of `body` into one place.
pub(crate) async fn collect(
    app: &App,
    headers: &HeaderMap,
    body: Incoming,
    limits: BodyLimits,
) -> Result<WholeBody, HttpError> {
    Ok(collect_pieces(app, headers, body, limits).await?.joined())
}

/// Reads all of `body`.
pub(crate) async fn collect_pieces(
    app: &App,
    headers: &HeaderMap,
    body: Incoming,
    limits: BodyLimits,
) -> Result<PiecedBody, HttpError> {
    let announced = body.size_hint().exact().map(|len| usize::try_from(len).unwrap_or(usize::MAX));
    if announced.is_some_and(|len| len > limits.bytes_max) {
        return Err(too_large(headers, body).await);
    }
    let mut arriving = Arriving {
        body,
        pieces: Pieces::default(),
        start: Instant::now(),
        patience: app.config.patience.body,
    };
    let room = match read_start(app, &mut arriving).await? {
        Start::Whole => {
            let len = arriving.pieces.len();
            app.room.whole(limits.memory(&mut arriving.pieces, len)).await?
        }
        Start::Part(held) => {
            let len = announced.unwrap_or(limits.bytes_max);
            let mut room = app.room.whole(limits.memory(&mut arriving.pieces, len)).await?;
            drop(held);
            while let Some(piece) = arriving.next().await? {
                if arriving.pieces.len() + piece.len() > limits.bytes_max {
                    return Err(too_large(headers, arriving.body).await);
                }
                arriving.pieces.push(piece);
            }
            let len = arriving.pieces.len();
            room.shrink(limits.memory(&mut arriving.pieces, len));
            room
        }
    };
    if arriving.pieces.len() > limits.bytes_max {
        return Err(too_large(headers, arriving.body).await);
    }
    app.metrics.bytes_in.add(arriving.pieces.len() as u64);
    Ok(PiecedBody { pieces: arriving.pieces, room })
}

/// What there is after the first bytes.
enum Start {
    Whole,
    /// More is to come; the bytes so far are counted here.
    Part(Option<Room>),
}

/// Reads up to [`START_BYTES`] and the piece that passes them.
async fn read_start(app: &App, arriving: &mut Arriving) -> Result<Start, HttpError> {
    let mut held: Option<Room> = None;
    while arriving.pieces.len() < START_BYTES {
        let Some(piece) = arriving.next().await? else { return Ok(Start::Whole) };
        arriving.pieces.push(piece);
        if arriving.body.is_end_stream() {
            return Ok(Start::Whole);
        }
        match &mut held {
            None => held = Some(app.room.start(arriving.pieces.len()).await?),
            Some(held) => held.grow(arriving.pieces.len().min(START_BYTES))?,
        }
    }
    Ok(Start::Part(held))
}

struct Arriving {
    body: Incoming,
    pieces: Pieces,
    start: Instant,
    patience: Duration,
}

impl Arriving {
    /// The next piece, `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let frame = match timeout(self.patience, self.body.frame()).await {
                Err(_) => return Err(too_slow()),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => {
                    let text = format!("cannot read the request's body: {error}");
                    return Err(HttpError::bad_request(text).and_close());
                }
                Ok(Some(Ok(frame))) => frame,
            };
            let earned = Duration::from_secs(self.pieces.len() as u64 / BYTES_PER_SECOND_MIN);
            if self.start.elapsed() > WHOLE_BODY_MIN + earned {
                return Err(too_slow());
            }
            // Trailers say nothing that is of use here.
            if let Ok(piece) = frame.into_data() {
                return Ok(Some(piece));
            }
        }
    }
}

fn too_slow() -> HttpError {
    HttpError::new(StatusCode::REQUEST_TIMEOUT, "the request's body arrives too slowly").and_close()
}

/// The refusal of a body that is too long.
async fn too_large(headers: &HeaderMap, mut body: Incoming) -> HttpError {
    let refusal = HttpError::too_large();
    // A client that asks before it sends the body has not sent it.
    if headers.contains_key(EXPECT) {
        return refusal.and_close();
    }
    let discard = async {
        let mut left = DISCARD_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let len = frame.data_ref().map_or(0, Bytes::len);
            left = left.checked_sub(len)?;
        }
        body.is_end_stream().then_some(())
    };
    match timeout(DISCARD_TIME_MAX, discard).await {
        Ok(Some(())) => refusal,
        _ => refusal.and_close(),
    }
}
