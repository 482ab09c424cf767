//! Disk, clock and randomness: the only door to everything that is not deterministic.
//!
//! Engines take a [`Disk`] and a [`Clock`]; production hands them the operating system's, tests
//! and the simulation hand them their own, with faults. What bytes mean is not known here.

mod background;
mod clock;
mod disk;
mod page_cache;
mod sim;
mod system;

pub use background::{Manners, give_way, in_background, set_manners};
pub use clock::{Clock, ManualClock, SystemClock};
pub use disk::{Disk, DiskError, DiskResult, Entry, File, FileLock};
pub use page_cache::{CacheFile, Page, PageCache, PageCacheStats, PageError, PageRange};
pub use sim::{Access, Fault, FaultConfig, SimDisk};
pub use system::SystemDisk;
