//! Work that others must not wait for.

use std::thread::Builder;

use parking_lot::Mutex;

/// How far behind others a thread is put, 0 to 19: it gets a tenth of a processor that somebody else
/// wants as well, and all of one that nobody wants.
const NICENESS: i32 = 10;

/// Does `work` on a thread of its own that gives way to all others, and waits for it.
///
/// A thread of its own because priority can be given away but not taken back: whoever calls this goes
/// on as fast as before, with locks that others wait for.
///
/// # Panics
/// If `work` does.
pub fn in_background<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let work = Mutex::new(Some(work));
    let take = || work.lock().take().expect("BUG: the work is done once");
    std::thread::scope(|scope| {
        let worker = Builder::new().name("background".to_owned()).spawn_scoped(scope, || {
            // What it is for works without: nothing but the others' waiting depends on it.
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
            take()()
        });
        match worker {
            Ok(worker) => worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // No more threads are to be had.
            Err(_) => take()(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn niceness() -> i32 {
        rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap()
    }

    #[test]
    fn the_work_gives_way_and_the_caller_does_not() {
        let before = niceness();
        let (inside, sum) = in_background(|| (niceness(), (1..=4).sum::<i32>()));
        assert_eq!((inside, sum), (NICENESS.max(before), 10));
        assert_eq!(niceness(), before);
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let caught = std::panic::catch_unwind(|| in_background(|| panic!("it broke")));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"it broke"));
    }
}
