//! The nyala binary: serve and the command line tools
fn main() {}
