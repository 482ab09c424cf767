//! Whole segment files on disks, through the public interface.

mod disk;
mod golden;
mod support;
