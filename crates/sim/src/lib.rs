//! Seeded simulation of crashes and disk faults against the reference model
