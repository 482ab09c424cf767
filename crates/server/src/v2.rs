//! Paths of InfluxDB 2 that servers of version 1 have as well: clients of both need no second way.
//!
//! A bucket is a database and one of its retention policies, `database/policy`.

mod buckets;
mod delete;
pub(crate) mod fuzzing;
mod predicate;

use hyper::StatusCode;

pub(crate) use buckets::handle as buckets;
pub(crate) use delete::handle as delete;

use crate::error::HttpError;
use crate::response::{self, Response};

/// Database and policy of a bucket; the policy may be empty and is the default one then.
///
/// # Errors
/// The text of the refusal.
pub(crate) fn split_bucket(bucket: &str) -> Result<(&str, &str), HttpError> {
    let refused = |text| Err(HttpError::new(StatusCode::NOT_FOUND, text));
    match bucket.split_once('/') {
        None if bucket.is_empty() => refused(format!(
            "bucket name {bucket:?} is missing a slash; not in \"database/retention-policy\" format"
        )),
        None => Ok((bucket, "")),
        Some(("", _)) => {
            refused(format!("bucket name {bucket:?} is in db/rp form but has an empty database"))
        }
        Some(parts) => Ok(parts),
    }
}

/// Flux is not spoken here; the answer is that of a server that has it switched off.
pub(crate) fn refuse_flux() -> Response {
    response::plain(
        StatusCode::FORBIDDEN,
        "Flux query service disabled. Verify flux-enabled=true in the [http] section of the \
         InfluxDB config.\n",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_two_parts() {
        assert_eq!(split_bucket("d/r"), Ok(("d", "r")));
        assert_eq!(split_bucket("d/r/x"), Ok(("d", "r/x")));
        assert_eq!(split_bucket("d/"), Ok(("d", "")));
        assert_eq!(split_bucket("d"), Ok(("d", "")));
        assert_eq!(
            split_bucket("/r").unwrap_err().text,
            "bucket name \"/r\" is in db/rp form but has an empty database"
        );
        assert_eq!(
            split_bucket("").unwrap_err().text,
            "bucket name \"\" is missing a slash; not in \"database/retention-policy\" format"
        );
    }
}
