//! Keeps a thread that answers one client of the same machine on the processor where that client runs.
//!
//! Client and server then take turns on one processor, and nobody is waked on another one. Linux does so by itself
//! if the client's processor is the server's; if it is not, and all processors are busy, both stay where they are:
//! a thread that sleeps having used more than its share stays in the queue of its processor (kernels since 6.12),
//! and is not looked at when it is waked. Two clients whose threads are crossed like that ask a third less
//! (docs/benchmarks.md). So the thread moves by itself, and may be moved again right after.
//!
//! Where requests are heavy it matters more for whom else the processor works. Such a thread does not go where more of
//! them are than where it is, except that two that are crossed change places. And of three on one processor one goes where
//! there is one, wherever its client is: a client and a server that take turns keep a processor busy, and to Linux that is as
//! much as three such pairs on one.

use std::os::fd::AsFd;
use std::thread::{self, ThreadId};

use parking_lot::Mutex;
use rustix::net::sockopt::socket_incoming_cpu;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use super::READS_A_LOOK;

/// Processor time of a heavy request, at least: to wake somebody on another processor costs a tenth of it, by estimate.
const HEAVY_US: u64 = 60;

/// Where a thread and its client were when it looked last.
#[derive(Clone, Copy, Debug)]
struct Seat {
    thread: ThreadId,
    processor: usize,
    client: usize,
    /// Processor time that the thread has taken.
    taken_us: u64,
}

/// Of all threads that answer one client.
static SEATS: Mutex<Vec<Seat>> = Mutex::new(Vec::new());

/// Moves this thread, if there is a better place, to the processor that handled the last packet of `socket` (of a client on
/// this machine, the one where it sent that), or to where fewer such threads are.
pub(super) fn follow(socket: &impl AsFd) {
    let (Ok(client), Ok(allowed)) = (socket_incoming_cpu(socket), sched_getaffinity(None)) else {
        return;
    };
    let (processor, client) = (sched_getcpu(), client as usize);
    if client >= CpuSet::MAX_CPU || !allowed.is_set(client) {
        return;
    }
    let processors = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor));
    let taken = clock_gettime(ClockId::ThreadCPUTime);
    let taken_us = (taken.tv_sec * 1_000_000 + taken.tv_nsec / 1000) as u64;
    let seat = Seat { thread: thread::current().id(), processor, client, taken_us };
    let best = best_processor(&mut SEATS.lock(), seat, processors);
    if best != processor {
        move_to(best, &allowed);
    }
}

/// This thread answers its client no longer.
pub(super) fn leave() {
    let thread = thread::current().id();
    SEATS.lock().retain(|seat| seat.thread != thread);
}

/// Takes note of where a thread and its client are, and says where of `processors` it is to be. `seats` has it there then.
fn best_processor(
    seats: &mut Vec<Seat>,
    seat: Seat,
    processors: impl Iterator<Item = usize>,
) -> usize {
    let before = seats.iter().position(|other| other.thread == seat.thread);
    let before = before.map(|at| seats.swap_remove(at));
    let is_heavy = before
        .is_none_or(|before| seat.taken_us - before.taken_us >= HEAVY_US * u64::from(READS_A_LOOK));
    let on = |processor| seats.iter().filter(move |other| other.processor == processor);
    let here = on(seat.processor).count();
    let is_crossed = on(seat.client).any(|other| other.client == seat.processor);
    let best = if !is_heavy
        || seat.client != seat.processor && (on(seat.client).count() <= here || is_crossed)
    {
        seat.client
    } else if here > 1
        && let Some((least, processor)) = processors.map(|at| (on(at).count(), at)).min()
        // An idle processor takes what waits by itself.
        && (1..here).contains(&least)
    {
        processor
    } else {
        seat.processor
    };
    seats.push(Seat { processor: best, ..seat });
    best
}

/// Has this thread run on `processor`; it may be moved on from there to any of `allowed`.
fn move_to(processor: usize, allowed: &CpuSet) {
    let mut there = CpuSet::new();
    there.set(processor);
    // It is there when this returns; a failure leaves it where it is, which costs time and nothing else.
    if sched_setaffinity(None, &there).is_ok()
        && let Err(error) = sched_setaffinity(None, allowed)
    {
        tracing::warn!("a thread is bound to processor {processor}: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has threads look in turns, with requests that take so much, until nobody moves: where they are then.
    fn settle(mut places: Vec<(usize, usize)>, request_us: u64) -> Vec<usize> {
        let threads: Vec<ThreadId> = places
            .iter()
            .map(|_| thread::spawn(|| thread::current().id()).join().unwrap())
            .collect();
        let mut seats: Vec<Seat> = places
            .iter()
            .zip(&threads)
            .map(|((processor, client), thread)| Seat {
                thread: *thread,
                processor: *processor,
                client: *client,
                taken_us: 5,
            })
            .collect();
        for look in 1..5 {
            for (place, thread) in places.iter_mut().zip(&threads) {
                let taken_us = 5 + look * request_us * u64::from(READS_A_LOOK);
                let (processor, client) = *place;
                let seat = Seat { thread: *thread, processor, client, taken_us };
                place.0 = best_processor(&mut seats, seat, 0..2);
            }
        }
        assert_eq!(seats.len(), places.len());
        places.into_iter().map(|(processor, _)| processor).collect()
    }

    #[test]
    fn threads_go_where_their_clients_are() {
        let settle = |places| settle(places, HEAVY_US - 1);
        assert_eq!(settle(vec![(0, 1)]), [1]);
        assert_eq!(settle(vec![(0, 1), (1, 0)]), [1, 0]);
        assert_eq!(settle(vec![(0, 0), (0, 0), (1, 0), (1, 1)]), [0, 0, 0, 1]);
    }

    #[test]
    fn threads_with_heavy_requests_go_where_it_is_not_crowded() {
        let settle = |places| settle(places, HEAVY_US);
        assert_eq!(settle(vec![(0, 1)]), [1]);
        assert_eq!(settle(vec![(0, 1), (1, 0)]), [1, 0], "crossed");
        assert_eq!(settle(vec![(0, 1), (0, 1), (1, 0), (1, 0)]), [1, 1, 0, 0]);
        assert_eq!(settle(vec![(1, 0), (0, 0)]), [1, 0], "both clients on one processor");
        assert_eq!(settle(vec![(0, 0), (0, 0), (1, 0), (1, 1)]), [0, 0, 1, 1]);
        assert_eq!(settle(vec![(0, 0), (0, 0), (0, 1), (1, 1)]), [0, 0, 1, 1]);
        assert_eq!(settle(vec![(1, 1), (0, 0), (0, 0), (0, 0)]), [1, 1, 0, 0], "three and one");
    }

    #[test]
    fn a_thread_that_has_not_looked_before_is_taken_for_one_with_heavy_requests() {
        let mut seats = Vec::new();
        let seat = |processor, client| {
            let thread = thread::spawn(|| thread::current().id()).join().unwrap();
            Seat { thread, processor, client, taken_us: 1 }
        };
        assert_eq!(best_processor(&mut seats, seat(1, 0), 0..2), 0);
        assert_eq!(best_processor(&mut seats, seat(1, 0), 0..2), 1);
        assert_eq!(seats.iter().map(|seat| seat.processor).collect::<Vec<_>>(), [0, 1]);
    }
}
