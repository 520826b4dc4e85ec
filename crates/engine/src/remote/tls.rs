//! TLS over a connection, by rustls.
//!
//! Invariant: a server is verified unless its user asked for the opposite; the certificates trusted by default are the
//! system's (`SSL_CERT_FILE` and `SSL_CERT_DIR` name others).

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// The most that waits to be encrypted and sent, in bytes.
const UNSENT_BYTES_MAX: usize = 1 << 18;

/// How a server is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verification<'a> {
    /// By the certificates that the system trusts.
    System,
    /// By `ca-cert.pem` in this directory; `client-cert.pem` and `client-key.pem`, if they are there, are shown to it.
    Directory(&'a Path),
    /// Not at all.
    None,
}

/// The state of TLS on a connection.
#[derive(Debug)]
pub(crate) struct Tls(ClientConnection);

impl Tls {
    /// To a server of this name; nothing is sent yet.
    ///
    /// # Errors
    /// If there are no certificates, or the name is none.
    pub(crate) fn new(name: &str, verification: Verification<'_>) -> io::Result<Tls> {
        let config = config(verification)?;
        let name = ServerName::try_from(name.to_string())
            .map_err(|_| io::Error::other(format!("{name} is not a name that a certificate can have")))?;
        let mut connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        connection.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        Ok(Tls(connection))
    }

    /// Whether something waits to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        self.0.wants_write()
    }

    /// Whether the handshake goes on.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    /// Sends what waits, as far as the socket takes it.
    pub(crate) fn flush(&mut self, socket: &mut impl Write) -> io::Result<()> {
        while self.0.wants_write() {
            match self.0.write_tls(socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Encrypts and sends as much as there is room for.
    pub(crate) fn send(&mut self, socket: &mut impl Write, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.flush(socket)?;
        let taken = self.0.writer().write_vectored(parts)?;
        self.flush(socket)?;
        if taken == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    /// Receives and decrypts into the first part that has room; 0 at the end.
    pub(crate) fn receive(
        &mut self,
        socket: &mut impl Read,
        parts: &mut [IoSliceMut<'_>],
    ) -> io::Result<usize> {
        let Some(part) = parts.iter_mut().find(|part| !part.is_empty()) else { return Ok(0) };
        loop {
            match self.0.reader().read(part) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Closed without TLS' own end: what was received stands, and nothing follows.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            self.advance(socket)?;
        }
    }

    /// Takes what the socket has received.
    pub(crate) fn advance(&mut self, socket: &mut impl Read) -> io::Result<usize> {
        let read = self.0.read_tls(socket)?;
        self.0.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(read)
    }
}

fn config(verification: Verification<'_>) -> io::Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    match verification {
        Verification::None => {
            let verifier = Arc::new(Unverified(provider));
            Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
        }
        Verification::System => Ok(builder.with_root_certificates(system_roots()?).with_no_client_auth()),
        Verification::Directory(directory) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(&directory.join("ca-cert.pem"))? {
                roots.add(certificate).map_err(io::Error::other)?;
            }
            let builder = builder.with_root_certificates(roots);
            let (own, key) = (directory.join("client-cert.pem"), directory.join("client-key.pem"));
            if !own.exists() {
                return Ok(builder.with_no_client_auth());
            }
            let key = PrivateKeyDer::from_pem_file(&key).map_err(|error| unreadable(&key, &error))?;
            builder.with_client_auth_cert(certificates(&own)?, key).map_err(io::Error::other)
        }
    }
}

fn system_roots() -> io::Result<RootCertStore> {
    let loaded = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(loaded.certs);
    if roots.is_empty() {
        return Err(io::Error::other(
            "this machine trusts no certificates; install ca-certificates, or name a file of them with SSL_CERT_FILE",
        ));
    }
    Ok(roots)
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    read.map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, problem: &rustls::pki_types::pem::Error) -> io::Error {
    io::Error::other(format!("{}: {problem}", path.display()))
}

/// Accepts any certificate.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
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
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
