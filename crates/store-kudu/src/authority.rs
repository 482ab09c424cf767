//! The certificate of a cluster's own authority, for `ca-file`. Kudu shows it on a page of its masters
//! since 1.17 only; its protocol tells it in every version.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kudu_client::Client;
use store::StoreError;

use crate::error::cluster;
use crate::options::KuduOptions;
use crate::runtime::Runtime;

/// Characters of a line of PEM.
const LINE_MAX: usize = 64;

/// The certificates, in PEM, that the cluster's servers are signed by, as its leading master tells.
/// Who it is that tells is checked as far as the options say.
///
/// # Errors
/// [`StoreError`]: the cluster cannot be reached, or has none.
pub fn cluster_authority(options: &KuduOptions) -> Result<String, StoreError> {
    let runtime = Runtime::start()?;
    let client = Client::new(options.client_config()?);
    let certificates = runtime.wait(async { client.authorities().await.map_err(cluster) })?;
    if certificates.is_empty() {
        let message = "the Kudu cluster names no authority of its own: its masters have none";
        return Err(StoreError::Io(message.to_owned()));
    }
    Ok(certificates.iter().map(|der| pem(der)).collect())
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    let mut rest = text.as_str();
    while let Some((line, behind)) = rest.split_at_checked(LINE_MAX) {
        pem.push_str(line);
        pem.push('\n');
        rest = behind;
    }
    if !rest.is_empty() {
        pem.push_str(rest);
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_of_64_characters() {
        let lines = |bytes: usize| -> Vec<usize> {
            let text = pem(&vec![7; bytes]);
            let body = text.lines().filter(|line| !line.starts_with('-'));
            body.map(str::len).collect()
        };
        assert_eq!(lines(48), [64]);
        assert_eq!(lines(49), [64, 4]);
        assert_eq!(lines(3), [4]);
    }
}
