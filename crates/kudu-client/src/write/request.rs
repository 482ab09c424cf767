//! Numbers of writes, by which servers recognise a repeated one.
//!
//! A number is unfinished from the moment it is taken until its [`Request`] is dropped; servers
//! forget the results of everything below the first unfinished one.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::proto::RequestId;

/// All writes of a client.
#[derive(Debug)]
pub(crate) struct Requests {
    client_id: String,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    next: i64,
    unfinished: BTreeSet<i64>,
}

/// One write over all its attempts.
#[derive(Debug)]
pub(crate) struct Request {
    seq_no: i64,
    attempt_no: i64,
    client_id: String,
    state: Arc<Mutex<State>>,
}

impl Requests {
    pub(crate) fn new() -> Self {
        Self { client_id: format!("{:032x}", rand::random::<u128>()), state: Arc::default() }
    }

    pub(crate) fn begin(&self) -> Request {
        let mut state = self.state.lock();
        let seq_no = state.next;
        state.next += 1;
        state.unfinished.insert(seq_no);
        Request {
            seq_no,
            attempt_no: 0,
            client_id: self.client_id.clone(),
            state: Arc::clone(&self.state),
        }
    }
}

impl Request {
    /// The identification of the next attempt; no two are alike.
    pub(crate) fn next_attempt(&mut self) -> RequestId {
        let first = self.state.lock().unfinished.first().copied().unwrap_or(self.seq_no);
        let id = RequestId {
            client_id: self.client_id.clone(),
            seq_no: self.seq_no,
            first_incomplete_seq_no: first,
            attempt_no: self.attempt_no,
        };
        self.attempt_no += 1;
        id
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.state.lock().unfinished.remove(&self.seq_no);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unfinished_number_is_told() {
        let requests = Requests::new();
        let mut a = requests.begin();
        let mut b = requests.begin();
        assert_eq!((a.next_attempt().seq_no, b.next_attempt().seq_no), (0, 1));
        assert_eq!(b.next_attempt().first_incomplete_seq_no, 0);
        drop(a);
        let id = b.next_attempt();
        assert_eq!((id.first_incomplete_seq_no, id.attempt_no), (1, 2));
        assert_eq!(id.client_id.len(), 32);
    }
}
