//! What the client knows of the cluster: who leads the masters, and where tablets are.

pub(crate) mod locations;
pub(crate) mod master;
