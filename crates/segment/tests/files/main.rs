//! Whole segment files on disks, through the public interface.

#![allow(clippy::unwrap_used)]

mod disk;
mod golden;
mod support;
