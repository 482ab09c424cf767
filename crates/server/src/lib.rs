//! Listeners, routes, admission and error mapping
