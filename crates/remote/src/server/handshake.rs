//! A secured connection: TLS 1.3, then each end proves that it knows the secret.
//!
//! The server has a key of its own that lasts as long as its process (RFC 7250, without certificates), so that TLS says nothing
//! of who it is. That is what the secret proves: with a code over what both ends derive from this connection alone (RFC 8446,
//! section 7.5), which nobody between them has. After TLS: the server says whether it wants a proof (a byte); the client sends
//! its own (32 bytes); the server says whether it is right (a byte) and sends its own.
//!
//! Invariant: before both have proven it, no byte is passed on, and the other end has [`PATIENCE`].

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fiord_sys::errno::error_text;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, ServerConfig, ServerConnection,
    SignatureScheme,
};

use super::secret::{PROOF_BYTES, Role, Secret, unpredictable};

/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is derived from a connection for the proofs.
const BINDING: &[u8] = b"EXPORTER-fiord-secret";

/// What a server says of proofs.
const NOT_WANTED: u8 = 0;
const WANTED: u8 = 1;
const WRONG: u8 = 0;
const RIGHT: u8 = 1;

/// A connection on which both ends know who the other is.
#[derive(Debug)]
pub(super) struct Secured {
    pub tls: Connection,
    /// A stream of the Internet or a Unix socket: they differ in how they are connected alone.
    pub socket: UnixStream,
}

/// The settings of a server's end, with a new key.
///
/// # Errors
/// There is no randomness, or the key cannot be used.
pub(super) fn server_config() -> io::Result<Arc<ServerConfig>> {
    // PKCS #8 of an Ed25519 key (RFC 8410, section 7): all of it but the 32 bytes is fixed.
    let mut key = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20".to_vec();
    key.extend(unpredictable()?);
    let key = any_eddsa_type(&PrivatePkcs8KeyDer::from(key)).map_err(io::Error::other)?;
    let public = key.public_key().ok_or_else(|| io::Error::other("the key has no public part"))?;
    let public = CertificateDer::from(public.as_ref().to_vec());
    let certified = Arc::new(CertifiedKey::new(vec![public], key));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(certified)));
    Ok(Arc::new(config))
}

/// The server's end of a connection. `secret`: what the client has to prove to know, if anything.
///
/// # Errors
/// What the client did wrong.
pub(super) fn serve(
    socket: UnixStream,
    config: &Arc<ServerConfig>,
    secret: Option<&Secret>,
) -> Result<Secured, String> {
    let tls = ServerConnection::new(Arc::clone(config)).map_err(|why| why.to_string())?;
    let mut talk = Talk::begin(tls.into(), socket)?;
    talk.send(&[if secret.is_some() { WANTED } else { NOT_WANTED }])?;
    let mut proof = [0; PROOF_BYTES];
    talk.receive(&mut proof)?;
    let binding = talk.binding()?;
    match secret {
        Some(secret) if !secret.is_proven(Role::Client, &binding, &proof) => {
            talk.send(&[WRONG])?;
            let _ = talk.timed.socket.shutdown(Shutdown::Both);
            Err("it does not know the secret".to_string())
        }
        Some(secret) => {
            talk.send(&[&[RIGHT], &secret.proof(Role::Server, &binding)[..]].concat()).map(|()| talk.end())
        }
        None => talk.send(&[&[RIGHT], &[0; PROOF_BYTES][..]].concat()).map(|()| talk.end()),
    }
}

/// The client's end. `secret`: what the server has to prove to know, if anything.
///
/// # Errors
/// What is wrong with the server.
pub(super) fn connect(socket: UnixStream, secret: Option<&Secret>) -> Result<Secured, String> {
    let mut talk = Talk::begin(client_tls().map_err(|error| error_text(&error))?, socket)?;
    let mut wants = [0];
    talk.receive(&mut wants)?;
    let secret = match (secret, wants) {
        (None, [NOT_WANTED]) => None,
        (Some(secret), [WANTED]) => Some(secret),
        (None, _) => {
            return Err(
                "the server wants a secret: copy its file to ~/.config/fiord/secret, mode 0600".to_string()
            );
        }
        (Some(_), _) => {
            return Err(
                "the server asks for no secret, so that anyone could be there: start it with the secret, or set \
                        FIORD_SECRET_FILE to nothing to go without"
                    .to_string(),
            );
        }
    };
    let binding = talk.binding()?;
    talk.send(&secret.map_or([0; PROOF_BYTES], |secret| secret.proof(Role::Client, &binding)))?;
    let (mut answer, mut proof) = ([WRONG], [0; PROOF_BYTES]);
    talk.receive(&mut answer)?;
    if answer != [RIGHT] {
        return Err("the server has another secret: copy its file here".to_string());
    }
    talk.receive(&mut proof)?;
    if secret.is_some_and(|secret| !secret.is_proven(Role::Server, &binding, &proof)) {
        return Err("what answers there does not know the secret: it is another server".to_string());
    }
    Ok(talk.end())
}

fn client_tls() -> io::Result<Connection> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyKey(provider)))
        .with_no_client_auth();
    let name = ServerName::try_from("fiord").map_err(io::Error::other)?;
    Ok(ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?.into())
}

/// A connection while its ends prove who they are.
struct Talk {
    tls: Connection,
    timed: Timed,
}

impl Talk {
    fn begin(tls: Connection, socket: UnixStream) -> Result<Talk, String> {
        let timed = Timed { socket, until: Instant::now() + PATIENCE, first: Vec::new() };
        let mut talk = Talk { tls, timed };
        while talk.tls.is_handshaking() {
            talk.tls.complete_io(&mut talk.timed).map_err(|error| talk.timed.why(&error))?;
        }
        Ok(talk)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut send = || {
            self.tls.writer().write_all(bytes)?;
            while self.tls.wants_write() {
                self.tls.write_tls(&mut self.timed)?;
            }
            Ok(())
        };
        send().map_err(|error: io::Error| self.timed.why(&error))
    }

    fn receive(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        let mut receive = || {
            let mut got = 0;
            while got < bytes.len() {
                match self.tls.reader().read(&mut bytes[got..]) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(count) => got += count,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        if self.tls.read_tls(&mut self.timed)? == 0 {
                            return Err(io::ErrorKind::UnexpectedEof.into());
                        }
                        self.tls.process_new_packets().map_err(io::Error::other)?;
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        receive().map_err(|error: io::Error| self.timed.why(&error))
    }

    /// What both ends of this connection can derive, and nobody else.
    fn binding(&self) -> Result<[u8; 32], String> {
        self.tls.export_keying_material([0; 32], BINDING, None).map_err(|why| why.to_string())
    }

    fn end(self) -> Secured {
        Secured { tls: self.tls, socket: self.timed.socket }
    }
}

/// A socket that has until a time, and what came first on it.
struct Timed {
    socket: UnixStream,
    until: Instant,
    first: Vec<u8>,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(Some(left)),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// What is wrong, in words: who speaks another protocol is named.
    fn why(&self, error: &io::Error) -> String {
        match self.first[..] {
            [version, 0, 5 | 10, 0, ..] => {
                format!(
                    "fio is there (version {version} of its protocol), and it speaks to fio alone: run fiord on both ends"
                )
            }
            [b'S', b'S', b'H', b'-', ..] => {
                "an ssh server is there: reach it by --hosts without --via".to_string()
            }
            _ if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) => {
                format!("what is there did not answer within {} s", PATIENCE.as_secs())
            }
            _ if error.kind() == io::ErrorKind::UnexpectedEof => "the connection ended".to_string(),
            _ if error.raw_os_error().is_some() => error_text(error),
            _ => format!("what is there is not fiord ({})", error_text(error)),
        }
    }
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = loop {
            self.socket.set_read_timeout(self.left()?)?;
            match self.socket.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        let wanted = 4_usize.saturating_sub(self.first.len()).min(count);
        self.first.extend(&bytes[..wanted]);
        Ok(count)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.socket.set_write_timeout(self.left()?)?;
            match self.socket.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes any key that the server proves to have: who it is, the secret says.
#[derive(Debug)]
struct AnyKey(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyKey {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not spoken".to_string()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(cert.as_ref());
        verify_tls13_signature_with_raw_key(
            message,
            &key,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn secret(digit: &str) -> Option<Secret> {
        Secret::of(&digit.repeat(64))
    }

    /// What both ends make of each other.
    fn meet(
        client: Option<Secret>,
        server: Option<Secret>,
    ) -> (Result<Secured, String>, Result<Secured, String>) {
        let (here, there) = UnixStream::pair().unwrap();
        let served = thread::spawn(move || serve(there, &server_config().unwrap(), server.as_ref()));
        (connect(here, client.as_ref()), served.join().unwrap())
    }

    #[test]
    fn ends_with_one_secret_meet_and_others_do_not() {
        let (client, server) = meet(secret("a"), secret("a"));
        let (mut client, mut server) = (client.unwrap(), server.unwrap());
        client.tls.writer().write_all(b"hello").unwrap();
        client.tls.write_tls(&mut client.socket).unwrap();
        let mut read = Vec::new();
        while read.len() < 5 {
            server.tls.read_tls(&mut server.socket).unwrap();
            server.tls.process_new_packets().unwrap();
            let _ = server.tls.reader().read_to_end(&mut read);
        }
        assert_eq!(read, b"hello");
        let (client, server) = meet(secret("a"), secret("b"));
        assert!(
            client.unwrap_err().contains("another secret") && server.unwrap_err().contains("does not know")
        );
        let (client, server) = meet(None, secret("b"));
        assert!(client.unwrap_err().contains("wants a secret") && server.is_err());
        let (client, server) = meet(secret("a"), None);
        assert!(client.unwrap_err().contains("asks for no secret") && server.is_err());
        let (client, server) = meet(None, None);
        assert!(client.is_ok() && server.is_ok());
    }

    /// It speaks TLS with both ends, and passes on what they prove.
    #[test]
    fn who_stands_between_two_ends_proves_nothing_to_either() {
        let (here, to_client) = UnixStream::pair().unwrap();
        let (to_server, there) = UnixStream::pair().unwrap();
        let between = thread::spawn(move || {
            let server = ServerConnection::new(server_config().unwrap()).unwrap();
            let mut with_client = Talk::begin(server.into(), to_client).unwrap();
            let mut with_server = Talk::begin(client_tls().unwrap(), to_server).unwrap();
            let mut byte = [0];
            with_server.receive(&mut byte).unwrap();
            with_client.send(&byte).unwrap();
            let mut proof = [0; PROOF_BYTES];
            with_client.receive(&mut proof).unwrap();
            with_server.send(&proof).unwrap();
            with_server.receive(&mut byte).unwrap();
            // It says that all is well, and sends back what it has seen of the client.
            with_client.send(&[&[RIGHT], &proof[..]].concat()).unwrap();
            byte
        });
        let served = thread::spawn(move || serve(there, &server_config().unwrap(), secret("a").as_ref()));
        assert!(connect(here, secret("a").as_ref()).unwrap_err().contains("another server"));
        assert_eq!(between.join().unwrap(), [WRONG]);
        assert!(served.join().unwrap().unwrap_err().contains("does not know"));
    }

    #[test]
    fn who_speaks_something_else_is_named() {
        for (bytes, expected) in [
            (&b"a\x00\x05\x00\x00\x00\x00\x00"[..], "fio is there (version 97"),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "ssh server"),
            (b"HTTP/1.1 400 Bad Request\r\n", "not fiord"),
            (b"", "the connection ended"),
        ] {
            let (here, mut there) = UnixStream::pair().unwrap();
            there.write_all(bytes).unwrap();
            there.shutdown(Shutdown::Write).unwrap();
            let why = connect(here, None).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }
}
