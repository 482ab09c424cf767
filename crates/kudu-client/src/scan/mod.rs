//! Reading rows, in columns, as the servers send them.

mod batch;
mod builder;
mod scanner;
mod tablet;
mod token;

pub use batch::{ColumnView, ScanBatch};
pub use builder::{ReadMode, ReplicaSelection, ScanBuilder};
pub use scanner::Scanner;
pub use token::ScanToken;
