//! Work that others must not wait for.
//!
//! A low priority alone does not make it so. A thread that is waked goes where it slept, if Linux has not taken it out of
//! that queue yet (EEVDF's delayed dequeue, since 6.12), and waits there behind whoever runs, often to the next tick: up
//! to 4 ms at 250 Hz, be the next processor idle. So long work says often
//! that others may go first, and does not wait for the kernel to notice.

use std::cell::Cell;
use std::thread::Builder;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How far behind others a thread is put, 0 to 19: it gets a tenth of a processor that somebody else
/// wants as well, and all of one that nobody wants.
const NICENESS: i32 = 10;
/// About so long others wait for a thread that yields. A yield that nobody waits for takes less than 1 us.
const TURN: Duration = Duration::from_micros(50);
/// The least work between two rests.
const STINT: Duration = Duration::from_millis(1);
/// A rest is never longer, whatever held the work up.
const REST_MAX: Duration = Duration::from_millis(100);

/// What a thread does for others where its work calls [`give_way`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manners {
    /// Nothing: it is others that wait for this work.
    Hurries,
    /// Lets whoever waits for its processor go first.
    Yields,
    /// Yields, and sleeps for so many percent of the time that it works.
    Rests(u32),
}

/// A thread that has manners.
#[derive(Clone, Copy)]
struct Polite {
    rest_percent: u32,
    yielded: Instant,
    rested: Instant,
}

thread_local! {
    static POLITE: Cell<Option<Polite>> = const { Cell::new(None) };
}

/// From here on this thread has such manners.
pub fn set_manners(manners: Manners) {
    let rest_percent = match manners {
        Manners::Hurries => return POLITE.set(None),
        Manners::Yields => 0,
        Manners::Rests(percent) => percent,
    };
    let now = Instant::now();
    let before = POLITE.get().unwrap_or(Polite { rest_percent, yielded: now, rested: now });
    POLITE.set(Some(Polite { rest_percent, ..before }));
}

/// To be called by long work, without locks that others want, every few microseconds if it can be: lets others go first
/// if it is time to, according to the thread's [`Manners`].
pub fn give_way() {
    let Some(polite) = POLITE.get() else { return };
    let now = Instant::now();
    let worked = now.duration_since(polite.rested);
    if polite.rest_percent > 0 && worked >= STINT {
        std::thread::sleep(rest(worked, polite.rest_percent));
        let now = Instant::now();
        POLITE.set(Some(Polite { yielded: now, rested: now, ..polite }));
    } else if now.duration_since(polite.yielded) >= TURN {
        std::thread::yield_now();
        POLITE.set(Some(Polite { yielded: Instant::now(), ..polite }));
    }
}

/// How long to rest after so much work.
fn rest(worked: Duration, percent: u32) -> Duration {
    (worked * percent / 100).min(REST_MAX)
}

/// Does `work` on a thread of its own that gives way to all others, and waits for it. It [`Manners::Yields`] at first.
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
            set_manners(Manners::Yields);
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
        let inside = in_background(|| (niceness(), POLITE.get().map(|p| p.rest_percent)));
        assert_eq!(inside, (NICENESS.max(before), Some(0)));
        assert_eq!(niceness(), before);
        assert!(POLITE.get().is_none());
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let caught = std::panic::catch_unwind(|| in_background(|| panic!("it broke")));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"it broke"));
    }

    #[test]
    fn rests_in_proportion_and_never_long() {
        assert_eq!(rest(STINT, 200), STINT * 2);
        assert_eq!(rest(STINT, 0), Duration::ZERO);
        assert_eq!(rest(Duration::from_secs(9), 200), REST_MAX);
    }

    #[test]
    fn what_others_get_depends_on_how_long_it_worked_and_on_its_manners() {
        give_way();
        assert!(POLITE.get().is_none(), "who hurries does not look at the clock");
        let past = Instant::now().checked_sub(STINT).unwrap();
        let worked = |rest_percent| {
            POLITE.set(Some(Polite { rest_percent, yielded: past, rested: past }));
            give_way();
            let after = POLITE.get().unwrap();
            (after.yielded > past, after.rested > past)
        };
        assert_eq!(worked(0), (true, false), "yielded only");
        assert_eq!(worked(100), (true, true), "rested");
        let next_turn = POLITE.get().unwrap().yielded;
        POLITE.set(Some(Polite { rest_percent: 0, yielded: Instant::now() + TURN, rested: past }));
        give_way();
        assert!(POLITE.get().unwrap().yielded > next_turn, "not before its turn is over");
        set_manners(Manners::Rests(7));
        let kept = POLITE.get().unwrap();
        assert_eq!((kept.rest_percent, kept.rested), (7, past), "its work so far still counts");
        set_manners(Manners::Hurries);
        assert!(POLITE.get().is_none());
    }
}
