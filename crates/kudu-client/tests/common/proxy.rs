//! A relay in front of a server that keeps what clients send, and loses answers if told to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Relays connections to one server for as long as the runtime lives.
pub(crate) struct Proxy {
    address: String,
    sent: Arc<Mutex<Vec<u8>>>,
    loses: Arc<AtomicBool>,
}

impl Proxy {
    pub(crate) async fn start(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let loses = Arc::new(AtomicBool::new(false));
        let (kept, lost) = (Arc::clone(&sent), Arc::clone(&loses));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(relay(client, server, Arc::clone(&kept), Arc::clone(&lost)));
            }
        });
        Self { address, sent, loses }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// What the server sends next is lost, with the connection.
    pub(crate) fn lose_next(&self) {
        self.loses.store(true, Ordering::SeqCst);
    }

    /// Whether that has happened since.
    pub(crate) fn has_lost(&self) -> bool {
        !self.loses.load(Ordering::SeqCst)
    }

    /// All that clients have sent so far.
    pub(crate) fn sent(&self) -> Vec<u8> {
        self.sent.lock().unwrap().clone()
    }
}

async fn relay(
    client: TcpStream,
    server: TcpStream,
    sent: Arc<Mutex<Vec<u8>>>,
    loses: Arc<AtomicBool>,
) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let answers = async move {
        let mut room = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from_server.read(&mut room).await {
            let is_lost = loses.swap(false, Ordering::SeqCst);
            if is_lost || to_client.write_all(&room[..length]).await.is_err() {
                break;
            }
        }
    };
    let requests = async move {
        let mut room = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from_client.read(&mut room).await {
            sent.lock().unwrap().extend_from_slice(&room[..length]);
            if to_server.write_all(&room[..length]).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = answers => {}
        () = requests => {}
    }
}
