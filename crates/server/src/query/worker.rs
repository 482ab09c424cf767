//! Execution on a worker thread: heavy statements, changes, and answers that are streamed.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use hyper::body::Bytes;
use model::Interrupt;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::cache::Collecting;
use super::execution::{Execution, Step};
use super::gate::{Need, Turn};
use crate::app::App;
use crate::error::HttpError;
use crate::gzip::Packer;
use crate::panic::text_of;

/// Size of the pieces an answer is sent in, bytes; answers that fit into one are sent whole.
const PIECE_BYTES: usize = 64 << 10;
/// The same for chunked answers, whose readers want the first rows before the last are known.
const CHUNKED_PIECE_BYTES: usize = 4 << 10;

/// What becomes known of an answer first.
#[derive(Debug)]
pub(crate) enum First {
    /// This is all of it.
    Whole(Vec<u8>),
    /// It comes in pieces.
    Streaming,
    /// There will be none.
    Failed(HttpError),
}

/// Where an answer goes.
#[derive(Debug)]
pub(crate) struct Sink {
    app: Arc<App>,
    turn: Turn,
    target: Target,
    packer: Option<Packer>,
    /// What was sent, if it is to be kept.
    collecting: Option<Collecting>,
}

#[derive(Debug)]
enum Target {
    /// To a client.
    Client {
        pieces: mpsc::Sender<io::Result<Bytes>>,
        /// Until the first piece is on its way.
        first: Option<oneshot::Sender<First>>,
    },
    /// Nowhere.
    Nobody,
}

/// Nobody takes the answer any more.
struct ClientGone;

impl Sink {
    pub(crate) fn new(
        app: &Arc<App>,
        (pieces, first): (mpsc::Sender<io::Result<Bytes>>, oneshot::Sender<First>),
        gzip: bool,
        collecting: Option<Collecting>,
        turn: Turn,
    ) -> Self {
        let target = Target::Client { pieces, first: Some(first) };
        let packer = gzip.then(Packer::new);
        Self { app: Arc::clone(app), turn, target, packer, collecting }
    }

    pub(crate) fn discard(app: &Arc<App>, turn: Turn) -> Self {
        let target = Target::Nobody;
        Self { app: Arc::clone(app), turn, target, packer: None, collecting: None }
    }

    /// Sends a piece; waits while the client is slow.
    fn send(
        &mut self,
        bytes: Vec<u8>,
        flush: bool,
        interrupt: &Interrupt,
    ) -> Result<(), ClientGone> {
        let Target::Client { pieces, first } = &mut self.target else { return Ok(()) };
        let piece = match &mut self.packer {
            Some(packer) => packer.add(&bytes, flush),
            None => bytes,
        };
        if piece.is_empty() {
            return Ok(());
        }
        self.collecting = self.collecting.take().and_then(|c| c.add(&piece, &self.app));
        if let Some(first) = first.take() {
            first.send(First::Streaming).map_err(|_| ClientGone)?;
        }
        match pieces.try_send(Ok(piece.into())) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(_)) => Err(ClientGone),
            Err(TrySendError::Full(piece)) => {
                let had_slot = self.turn.has_slot();
                self.turn.release_slot();
                pieces.blocking_send(piece).map_err(|_| ClientGone)?;
                if had_slot {
                    self.app.queries.take_slot(&mut self.turn, interrupt);
                }
                Ok(())
            }
        }
    }

    /// Sends the last piece.
    fn finish(mut self, bytes: Vec<u8>, has_failed: bool) {
        // Whoever has the answer may ask again at once.
        self.turn.release_slot();
        let Target::Client { pieces, first } = &mut self.target else { return };
        let bytes = match self.packer.take() {
            None => bytes,
            Some(packer) => packer.finish(&bytes),
        };
        let collecting = self.collecting.take().filter(|_| !has_failed);
        if let Some(collecting) = collecting.and_then(|c| c.add(&bytes, &self.app)) {
            collecting.keep(&self.app);
        }
        // If the client has gone meanwhile, there is nobody to tell.
        match first.take() {
            Some(first) => drop(first.send(First::Whole(bytes))),
            None => drop(pieces.blocking_send(Ok(bytes.into()))),
        }
    }

    /// Tells the client that there is no answer, or no more of it.
    fn abort(mut self, panic: &str) {
        let Target::Client { pieces, first } = &mut self.target else { return };
        match first.take() {
            Some(first) => {
                let error = HttpError::internal(format!("internal error: {panic}"));
                drop(first.send(First::Failed(error)));
            }
            None => {
                self.turn.release_slot();
                drop(pieces.blocking_send(Err(io::Error::other("internal error"))));
            }
        }
    }
}

/// Executes what is left of a request.
pub(crate) fn run(mut execution: Execution, mut sink: Sink) {
    let app = Arc::clone(&sink.app);
    let interrupt = execution.interrupt().clone();
    let id = app.queries.remember(&interrupt);
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| drive(&mut execution, &mut sink)));
    app.metrics.heavy_queries.observe(start.elapsed());
    app.queries.forget(id);
    match outcome {
        Ok(Ok(())) => sink.finish(execution.take(), execution.has_failed()),
        Ok(Err(ClientGone)) => interrupt.cancel(),
        Err(payload) => {
            let panic = text_of(&*payload);
            app.metrics.panics.add(1);
            tracing::error!("a query failed by a bug: {panic}");
            sink.abort(&panic);
        }
    }
}

fn drive(execution: &mut Execution, sink: &mut Sink) -> Result<(), ClientGone> {
    let interrupt = execution.interrupt().clone();
    let chunked = execution.is_chunked();
    let piece_bytes = if chunked { CHUNKED_PIECE_BYTES } else { PIECE_BYTES };
    loop {
        // An interrupted query does not wait for a slot: it ends at its next step.
        let may_compute = sink.turn.has_slot() || interrupt.check().is_err();
        let has = if may_compute { Need::Processor } else { Need::Thread };
        match execution.step(Some(has)) {
            Step::Ended => return Ok(()),
            Step::Needs(_) => sink.app.queries.take_slot(&mut sink.turn, &interrupt),
            Step::Went => {}
        }
        if execution.buffered_bytes() >= piece_bytes {
            let piece = execution.take();
            if !piece.is_empty() {
                sink.send(piece, chunked, &interrupt)?;
            }
        }
    }
}
