//! Planning and vectorised execution of InfluxQL over Store
