//! What happens on a connection before its first call: features, TLS, authentication, context.
//!
//! A token is offered only together with TLS, since a server picks it regardless and then drops a
//! client that sends it in the clear. On loopback TLS may end with the handshake ("authentication
//! only") if both sides know that, unless a password goes over the connection.

use bytes::Bytes;
use prost::Message;

use super::code;
use super::connection::{CallError, Connection};
use super::frame::{self, Frame};
use super::tls::{self, Trust};
use super::transport::Transport;
use crate::config::{Encryption, Security};
use crate::error::Error;
use crate::proto::{
    AuthenticationType, Empty, ErrorStatus, Negotiate, RequestHeader, SaslMechanism, SignedToken,
    rpc_feature, step,
};

const NEGOTIATION_CALL_ID: i32 = -33;
const CONTEXT_CALL_ID: i32 = -3;
/// Magic, version 9, service class 0, authentication protocol 0.
const PREAMBLE: &[u8] = b"hrpc\x09\0\0";

/// Who the peer is and what may be shown to it.
#[derive(Debug)]
pub(crate) struct Peer<'a> {
    /// Host and port, for messages.
    pub(crate) address: &'a str,
    pub(crate) host: &'a str,
    pub(crate) is_loopback: bool,
    pub(crate) security: &'a Security,
    /// The cluster's token, together with the certificates that a server must prove itself by.
    pub(crate) token: Option<(SignedToken, Vec<Vec<u8>>)>,
}

/// Negotiates and starts the connection.
pub(crate) async fn negotiate(
    mut transport: Transport,
    peer: &Peer<'_>,
) -> Result<Connection, CallError> {
    transport.queue(Bytes::from_static(PREAMBLE))?;
    let offer = offer(peer);
    let answer = exchange(&mut transport, peer, &offer).await?;
    if answer.step != step::NEGOTIATE {
        return Err(unexpected(answer.step));
    }
    let use_token = answer.authn_types.first().is_some_and(|chosen| chosen.token.is_some());
    let both = |feature| {
        offer.supported_features.contains(&feature) && answer.supported_features.contains(&feature)
    };
    if both(rpc_feature::TLS) {
        let trust = trust(peer, use_token);
        let session = handshake(&mut transport, peer, &trust).await?;
        if !both(rpc_feature::TLS_AUTHENTICATION_ONLY) {
            transport.encrypt(session)?;
        }
    } else if peer.security.must_encrypt() {
        let server = peer.address.to_owned();
        return Err(definitive(Error::EncryptionUnavailable { server }));
    } else if use_token {
        return Err(CallError::Protocol("a token is asked for without TLS".to_owned()));
    }
    if use_token {
        exchange_token(&mut transport, peer).await?;
    } else {
        log_in(&mut transport, peer, &answer).await?;
    }
    tracing::debug!(
        server = peer.address,
        encrypted = transport.is_encrypted(),
        token = use_token,
        "connected"
    );
    let header = RequestHeader { call_id: CONTEXT_CALL_ID, ..RequestHeader::default() };
    transport.queue(frame::prefix(&header, 0))?;
    transport.flush_all().await?;
    Ok(Connection::start(transport))
}

fn offer(peer: &Peer<'_>) -> Negotiate {
    let mut supported_features = vec![rpc_feature::APPLICATION_FEATURE_FLAGS];
    let mut authn_types =
        vec![AuthenticationType { sasl: Some(Empty {}), ..AuthenticationType::default() }];
    if peer.security.encryption != Encryption::Disabled {
        supported_features.push(rpc_feature::TLS);
        if peer.is_loopback && !peer.security.must_encrypt() {
            supported_features.push(rpc_feature::TLS_AUTHENTICATION_ONLY);
        }
        if peer.token.is_some() {
            let token = Some(Empty {});
            authn_types.push(AuthenticationType { token, ..AuthenticationType::default() });
        }
    }
    Negotiate { supported_features, step: step::NEGOTIATE, authn_types, ..Negotiate::default() }
}

/// What the operator pinned goes first; a token is shown only to a server of the cluster that
/// issued it.
fn trust(peer: &Peer<'_>, use_token: bool) -> Trust {
    let security = peer.security;
    match &peer.token {
        _ if !security.pinned_fingerprints.is_empty() => {
            Trust::Fingerprints(security.pinned_fingerprints.clone())
        }
        _ if !security.pinned_authorities.is_empty() => {
            Trust::Authorities(security.pinned_authorities.clone())
        }
        Some((_, authorities)) if use_token => Trust::Authorities(authorities.clone()),
        _ => Trust::Anyone,
    }
}

async fn handshake(
    transport: &mut Transport,
    peer: &Peer<'_>,
    trust: &Trust,
) -> Result<Box<rustls::ClientConnection>, CallError> {
    let failed =
        |message: String| definitive(Error::Tls { server: peer.address.to_owned(), message });
    let mut session = tls::session(peer.host, trust).map_err(failed)?;
    loop {
        let flight = tls::take_flight(&mut session)?;
        let is_done = !session.is_handshaking();
        if !flight.is_empty() {
            let message = Negotiate {
                step: step::TLS_HANDSHAKE,
                tls_handshake: Some(flight.into()),
                ..Negotiate::default()
            };
            send(transport, &message)?;
            transport.flush_all().await?;
        }
        if is_done {
            return Ok(session);
        }
        let answer = receive(transport, peer).await?;
        if answer.step != step::TLS_HANDSHAKE {
            return Err(unexpected(answer.step));
        }
        let flight = answer.tls_handshake.unwrap_or_default();
        tls::put_flight(&mut session, &flight).map_err(failed)?;
    }
}

async fn exchange_token(transport: &mut Transport, peer: &Peer<'_>) -> Result<(), CallError> {
    let token = peer.token.as_ref().map(|(token, _)| token.clone());
    let message =
        Negotiate { step: step::TOKEN_EXCHANGE, authn_token: token, ..Negotiate::default() };
    let answer = exchange(transport, peer, &message).await?;
    if answer.step == step::TOKEN_EXCHANGE { Ok(()) } else { Err(unexpected(answer.step)) }
}

async fn log_in(
    transport: &mut Transport,
    peer: &Peer<'_>,
    offered: &Negotiate,
) -> Result<(), CallError> {
    let mechanisms: Vec<&str> =
        offered.sasl_mechanisms.iter().map(|m| m.mechanism.as_str()).collect();
    if !mechanisms.contains(&"PLAIN") {
        let server = peer.address.to_owned();
        return Err(definitive(if mechanisms.contains(&"GSSAPI") {
            Error::KerberosRequired { server }
        } else {
            let message = format!("offers no authentication this client knows: {mechanisms:?}");
            Error::NotAuthorized { server, message }
        }));
    }
    let security = peer.security;
    let message = Negotiate {
        step: step::SASL_INITIATE,
        token: Some(format!("\0{}\0{}", security.user, security.password).into()),
        sasl_mechanisms: vec![SaslMechanism { mechanism: "PLAIN".to_owned() }],
        ..Negotiate::default()
    };
    let answer = exchange(transport, peer, &message).await?;
    if answer.step == step::SASL_SUCCESS { Ok(()) } else { Err(unexpected(answer.step)) }
}

async fn exchange(
    transport: &mut Transport,
    peer: &Peer<'_>,
    message: &Negotiate,
) -> Result<Negotiate, CallError> {
    send(transport, message)?;
    transport.flush_all().await?;
    receive(transport, peer).await
}

fn send(transport: &mut Transport, message: &Negotiate) -> Result<(), CallError> {
    let header = RequestHeader { call_id: NEGOTIATION_CALL_ID, ..RequestHeader::default() };
    let body = message.encode_to_vec();
    transport.queue(frame::prefix(&header, body.len()))?;
    transport.queue(body.into())?;
    Ok(())
}

async fn receive(transport: &mut Transport, peer: &Peer<'_>) -> Result<Negotiate, CallError> {
    let Frame { header, body, .. } = transport.read_frame().await?;
    if header.call_id != NEGOTIATION_CALL_ID {
        return Err(CallError::Protocol(format!("call {} in negotiation", header.call_id)));
    }
    let undecodable = |e: prost::DecodeError| CallError::Protocol(format!("bad negotiation: {e}"));
    if header.is_error == Some(true) {
        return Err(refused(ErrorStatus::decode(body).map_err(undecodable)?, peer));
    }
    Negotiate::decode(body).map_err(undecodable)
}

fn refused(status: ErrorStatus, peer: &Peer<'_>) -> CallError {
    if status.code != Some(code::FATAL_UNAUTHORIZED) {
        return CallError::Remote(status);
    }
    let advice = match peer.security.encryption {
        Encryption::Disabled => "allow the client to use TLS, or check",
        _ => "check",
    };
    let message = format!(
        "{} ({advice} the user name, --trusted_subnets, --rpc_authentication and \
         --rpc_encryption of the server)",
        status.message
    );
    definitive(Error::NotAuthorized { server: peer.address.to_owned(), message })
}

fn unexpected(step: i32) -> CallError {
    CallError::Protocol(format!("unexpected negotiation step {step}"))
}

fn definitive(error: Error) -> CallError {
    CallError::Definitive(Box::new(error))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    fn security(encryption: Encryption) -> Security {
        Security {
            user: "alice".to_owned(),
            password: String::new(),
            encryption,
            pinned_authorities: Vec::new(),
            pinned_fingerprints: Vec::new(),
        }
    }

    /// Negotiates with a server that answers everything with one prepared frame.
    async fn against(answer: Vec<u8>, encryption: Encryption) -> CallError {
        against_with(answer, &security(encryption)).await
    }

    async fn against_with(answer: Vec<u8>, security: &Security) -> CallError {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = [0; 1000];
            let _ = socket.read(&mut request).await;
            let _ = socket.write_all(&answer).await;
            if !answer.is_empty() {
                let _ = socket.read(&mut request).await;
            }
        });
        let token = SignedToken::default();
        let peer = Peer {
            address: "server:7051",
            host: "server",
            is_loopback: true,
            security,
            token: Some((token, Vec::new())),
        };
        let stream = TcpStream::connect(address).await.unwrap();
        negotiate(Transport::new(stream), &peer).await.unwrap_err()
    }

    fn frame(is_error: bool, body: &impl Message) -> Vec<u8> {
        let header = crate::proto::ResponseHeader {
            call_id: NEGOTIATION_CALL_ID,
            is_error: Some(is_error),
            sidecar_offsets: Vec::new(),
        };
        let body = body.encode_to_vec();
        [&frame::prefix(&header, body.len())[..], &body].concat()
    }

    fn offers(mechanism: &str) -> Negotiate {
        Negotiate {
            supported_features: vec![rpc_feature::APPLICATION_FEATURE_FLAGS],
            step: step::NEGOTIATE,
            sasl_mechanisms: vec![SaslMechanism { mechanism: mechanism.to_owned() }],
            ..Negotiate::default()
        }
    }

    #[tokio::test]
    async fn kerberos_is_refused_by_name() {
        let error = against(frame(false, &offers("GSSAPI")), Encryption::Disabled).await;
        assert!(error.to_string().contains("Kerberos"), "{error}");
        let error = against(frame(false, &offers("NOVELTY")), Encryption::Disabled).await;
        assert!(error.to_string().contains("NOVELTY"), "{error}");
    }

    #[tokio::test]
    async fn a_server_without_tls_is_refused_where_tls_is_required() {
        let error = against(frame(false, &offers("PLAIN")), Encryption::Required).await;
        assert!(error.to_string().contains("does not offer TLS"), "{error}");
        let mut pinned = security(Encryption::Optional);
        pinned.pinned_fingerprints = vec![[7; 32]];
        let error = against_with(frame(false, &offers("PLAIN")), &pinned).await;
        assert!(error.to_string().contains("does not offer TLS"), "{error}");
    }

    /// Neither to a server without TLS nor, on one machine, behind a handshake that ends TLS.
    #[tokio::test]
    async fn a_password_is_not_sent_in_the_clear_unless_asked_for() {
        let with_password =
            |encryption| Security { password: "secret".to_owned(), ..security(encryption) };
        let offers_plain = || frame(false, &offers("PLAIN"));
        let error = against_with(offers_plain(), &with_password(Encryption::Optional)).await;
        assert!(error.to_string().contains("does not offer TLS"), "{error}");
        // The server goes away when it has been sent the password.
        let error = against_with(offers_plain(), &with_password(Encryption::Disabled)).await;
        assert!(matches!(error, CallError::Network(_)), "{error}");
        let handshake_only = |security: &Security| {
            let (address, host) = ("server:7051", "server");
            let peer = Peer { address, host, is_loopback: true, security, token: None };
            offer(&peer).supported_features.contains(&rpc_feature::TLS_AUTHENTICATION_ONLY)
        };
        assert!(handshake_only(&security(Encryption::Optional)));
        assert!(!handshake_only(&with_password(Encryption::Optional)));
    }

    #[tokio::test]
    async fn a_token_is_not_shown_without_tls() {
        let token = AuthenticationType { token: Some(Empty {}), ..AuthenticationType::default() };
        let answer = Negotiate { authn_types: vec![token], ..offers("PLAIN") };
        let error = against(frame(false, &answer), Encryption::Optional).await;
        assert!(error.to_string().contains("without TLS"), "{error}");
    }

    #[tokio::test]
    async fn refusals_tell_what_the_server_says() {
        let status = ErrorStatus {
            message: "go away".to_owned(),
            code: Some(code::FATAL_UNAUTHORIZED),
            unsupported_feature_flags: Vec::new(),
        };
        let error = against(frame(true, &status), Encryption::Optional).await;
        assert!(matches!(error, CallError::Definitive(_)), "{error}");
        assert!(error.to_string().contains("go away"), "{error}");
    }

    #[tokio::test]
    async fn nonsense_is_no_negotiation() {
        let error = against(b"\0\0\0\x03abc".to_vec(), Encryption::Optional).await;
        assert!(matches!(error, CallError::Protocol(_)), "{error}");
        let error = against(Vec::new(), Encryption::Optional).await;
        assert!(matches!(error, CallError::Network(_) | CallError::Protocol(_)), "{error}");
    }
}
