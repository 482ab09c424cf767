//! Keeps a thread that answers one client of the same machine on the processor where that client runs.
//!
//! Client and server then take turns on one processor, and nobody is waked on another one. Linux does so by itself
//! if the client's processor is the server's; if it is not, and all processors are busy, both stay where they are:
//! a thread that sleeps having used more than its share stays in the queue of its processor (kernels since 6.12),
//! and is not looked at when it is waked. Two clients whose threads are crossed like that ask a third less
//! (docs/benchmarks.md). So the thread moves by itself, and may be moved again right after.

use std::os::fd::AsFd;

use rustix::net::sockopt::socket_incoming_cpu;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Moves this thread to the processor that handled the last packet of `socket`: of a client on this machine, the
/// one where it sent that. Nothing happens if the thread may not run there.
pub(super) fn follow(socket: &impl AsFd) {
    let Ok(cpu) = socket_incoming_cpu(socket) else { return };
    let cpu = cpu as usize;
    if cpu == sched_getcpu() || cpu >= CpuSet::MAX_CPU {
        return;
    }
    let Ok(all) = sched_getaffinity(None) else { return };
    if !all.is_set(cpu) {
        return;
    }
    let mut there = CpuSet::new();
    there.set(cpu);
    // It is there when this returns; a failure leaves it where it is, which costs time and nothing else.
    if sched_setaffinity(None, &there).is_ok()
        && let Err(error) = sched_setaffinity(None, &all)
    {
        tracing::warn!("a thread is bound to processor {cpu}: {error}");
    }
}
