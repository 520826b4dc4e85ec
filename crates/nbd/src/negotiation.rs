//! The fixed newstyle handshake, from the server's greeting to the first request.
//!
//! Invariant: every reply of the server is bounded before it is read, and an interrupted read ends the handshake.

use std::fmt;
use std::io::{self, Read, Write};

const GREETING_MAGIC: u64 = 0x4e42_444d_4147_4943;
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// Flags of the greeting: options have replies; no zeroes follow `EXPORT_NAME`.
const FIXED_NEWSTYLE: u16 = 1;
const NO_ZEROES: u16 = 2;

const OPTION_EXPORT_NAME: u32 = 1;
const OPTION_STARTTLS: u32 = 5;
const OPTION_GO: u32 = 7;

const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;
const REPLY_IS_ERROR: u32 = 1 << 31;
const ERROR_UNSUPPORTED: u32 = REPLY_IS_ERROR | 1;
const ERROR_POLICY: u32 = REPLY_IS_ERROR | 2;
const ERROR_TLS_REQUIRED: u32 = REPLY_IS_ERROR | 5;
const ERROR_UNKNOWN_EXPORT: u32 = REPLY_IS_ERROR | 6;
const ERROR_SHUTDOWN: u32 = REPLY_IS_ERROR | 7;

const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_SIZE: u16 = 3;

/// The longest reply to an option that is taken: names and texts have at most 4096 bytes.
const REPLY_BYTES_MAX: u32 = 8192;

/// What the server says of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Export {
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether it takes flushes.
    pub flushes: bool,
    /// Whether a write may ask to reach stable storage before its reply.
    pub writes_through: bool,
    /// Whether it takes trims.
    pub trims: bool,
    /// The smallest block, which offsets and lengths must be multiples of; 1 if the server does not say.
    pub block_bytes_min: u32,
    /// The longest read or write; `None` if the server does not say.
    pub block_bytes_max: Option<u32>,
}

impl Export {
    fn new(size_bytes: u64, flags: u16) -> Export {
        let has = |bit: u16| flags & 1 << bit != 0;
        Export {
            size_bytes,
            read_only: has(1),
            flushes: has(2),
            writes_through: has(3),
            trims: has(5),
            block_bytes_min: 1,
            block_bytes_max: None,
        }
    }
}

/// A handshake that failed.
#[derive(Debug)]
pub enum NegotiationError {
    /// The connection.
    Io(io::Error),
    /// What answers is not an NBD server of this protocol.
    NotSupported(&'static str),
    /// The server refused.
    Refused(Refusal),
}

/// What the server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    code: u32,
    export: String,
    message: String,
}

impl From<io::Error> for NegotiationError {
    fn from(error: io::Error) -> NegotiationError {
        NegotiationError::Io(error)
    }
}

impl fmt::Display for NegotiationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NegotiationError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("the server closed the connection during the handshake")
            }
            NegotiationError::Io(_) => f.write_str("the connection failed during the handshake"),
            NegotiationError::NotSupported(what) => f.write_str(what),
            NegotiationError::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal { code, export, message } = self;
        match *code {
            ERROR_UNSUPPORTED => {
                f.write_str("the server does not support TLS; use nbd:// instead of nbds://")
            }
            ERROR_POLICY => f.write_str("the server's configuration forbids it"),
            ERROR_TLS_REQUIRED => f.write_str("the server requires TLS; use nbds:// instead of nbd://"),
            ERROR_UNKNOWN_EXPORT => {
                write!(f, "the server has no export named {export:?}; nbdinfo --list names those it has")
            }
            ERROR_SHUTDOWN => f.write_str("the server is shutting down"),
            code => write!(f, "the server refused with {code:#x}"),
        }?;
        match message.as_str() {
            "" => Ok(()),
            message => write!(f, " (it says: {})", message.escape_debug()),
        }
    }
}

impl std::error::Error for NegotiationError {}

/// A handshake in progress over a stream.
#[derive(Debug)]
pub struct Negotiation<S> {
    stream: S,
    zeroes: bool,
}

impl<S: Read + Write> Negotiation<S> {
    /// Reads the greeting of the server, and answers it.
    ///
    /// # Errors
    /// If the stream fails, or no such server answers.
    pub fn begin(mut stream: S) -> Result<Negotiation<S>, NegotiationError> {
        let greeting: [u8; 18] = array(&mut stream)?;
        let (magic, version) = (be64(&greeting[0..8]), be64(&greeting[8..16]));
        if magic != GREETING_MAGIC {
            return Err(NegotiationError::NotSupported("what answers there is not an NBD server"));
        }
        let flags = u16::from_be_bytes([greeting[16], greeting[17]]);
        if version != OPTION_MAGIC || flags & FIXED_NEWSTYLE == 0 {
            return Err(NegotiationError::NotSupported(
                "the server speaks a version of the protocol from before 2013 (not fixed newstyle); use a newer one",
            ));
        }
        let flags = flags & (FIXED_NEWSTYLE | NO_ZEROES);
        stream.write_all(&u32::from(flags).to_be_bytes())?;
        Ok(Negotiation { stream, zeroes: flags & NO_ZEROES == 0 })
    }

    /// Asks the server to encrypt; after success, the stream is to be replaced (`map`).
    ///
    /// # Errors
    /// If the stream fails, or the server refuses.
    pub fn start_tls(&mut self) -> Result<(), NegotiationError> {
        self.option(OPTION_STARTTLS, &[])?;
        match self.reply(OPTION_STARTTLS)? {
            (REPLY_ACK, _) => Ok(()),
            (code, data) => Err(refused(code, "", &data)),
        }
    }

    /// The same handshake over another stream.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn map<T, E>(self, change: impl FnOnce(S) -> Result<T, E>) -> Result<Negotiation<T>, E> {
        Ok(Negotiation { stream: change(self.stream)?, zeroes: self.zeroes })
    }

    /// Ends the handshake with this export; requests may follow on the stream.
    ///
    /// # Errors
    /// If the stream fails, or the server refuses.
    pub fn go(mut self, name: &str) -> Result<(S, Export), NegotiationError> {
        let mut asked = Vec::with_capacity(name.len() + 8);
        asked.extend(length(name.as_bytes()));
        asked.extend(name.as_bytes());
        // Information besides the export itself: the sizes of blocks.
        asked.extend(1_u16.to_be_bytes());
        asked.extend(INFO_BLOCK_SIZE.to_be_bytes());
        self.option(OPTION_GO, &asked)?;
        let mut export = None;
        let mut sizes = None;
        loop {
            let (code, data) = self.reply(OPTION_GO)?;
            match code {
                REPLY_INFO => match (data.first_chunk().map(|kind| u16::from_be_bytes(*kind)), data.len()) {
                    (Some(INFO_EXPORT), 12) => {
                        export = Some((be64(&data[2..10]), u16::from_be_bytes([data[10], data[11]])));
                    }
                    (Some(INFO_BLOCK_SIZE), 14) => sizes = Some((be32(&data[2..6]), be32(&data[10..14]))),
                    // Other information was not asked for and does no harm.
                    _ => {}
                },
                REPLY_ACK => break,
                ERROR_UNSUPPORTED => return self.by_name(name),
                code => return Err(refused(code, name, &data)),
            }
        }
        let Some((size_bytes, flags)) = export else {
            return Err(NegotiationError::NotSupported("the server does not say how large the export is"));
        };
        let mut export = Export::new(size_bytes, flags);
        if let Some((least, most)) = sizes {
            export.block_bytes_min = least.max(1);
            export.block_bytes_max = (most != u32::MAX && most > 0).then_some(most);
        }
        Ok((self.stream, export))
    }

    /// The end of the handshake with a server that does not know `GO`: it closes the connection instead of refusing.
    fn by_name(mut self, name: &str) -> Result<(S, Export), NegotiationError> {
        self.option(OPTION_EXPORT_NAME, name.as_bytes())?;
        let answer: [u8; 10] = array(&mut self.stream)?;
        if self.zeroes {
            let _: [u8; 124] = array(&mut self.stream)?;
        }
        let export = Export::new(be64(&answer[0..8]), u16::from_be_bytes([answer[8], answer[9]]));
        Ok((self.stream, export))
    }

    fn option(&mut self, option: u32, data: &[u8]) -> io::Result<()> {
        let mut message = Vec::with_capacity(16 + data.len());
        message.extend(OPTION_MAGIC.to_be_bytes());
        message.extend(option.to_be_bytes());
        message.extend(length(data));
        message.extend(data);
        self.stream.write_all(&message)?;
        self.stream.flush()
    }

    /// The next reply to this option: its code and its data.
    fn reply(&mut self, option: u32) -> Result<(u32, Vec<u8>), NegotiationError> {
        let header: [u8; 20] = array(&mut self.stream)?;
        let length = be32(&header[16..20]);
        if be64(&header[0..8]) != OPTION_REPLY_MAGIC
            || be32(&header[8..12]) != option
            || length > REPLY_BYTES_MAX
        {
            return Err(NegotiationError::NotSupported(
                "the server's reply to an option is none of the protocol",
            ));
        }
        let mut data = vec![0; length as usize];
        fill(&mut self.stream, &mut data)?;
        Ok((be32(&header[12..16]), data))
    }
}

fn refused(code: u32, export: &str, data: &[u8]) -> NegotiationError {
    let message = String::from_utf8_lossy(data).into_owned();
    NegotiationError::Refused(Refusal { code, export: export.to_string(), message })
}

fn be64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn be32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte))
}

fn array<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    fill(stream, &mut bytes)?;
    Ok(bytes)
}

/// `read_exact`, but an interrupted read is an error, so that a server that does not answer can be left.
fn fill(stream: &mut impl Read, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.read(bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => bytes = &mut bytes[read..],
        }
    }
    Ok(())
}

/// The length of what follows, as the protocol has it.
fn length(data: &[u8]) -> [u8; 4] {
    // Names and lists have at most some thousand bytes.
    u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that has decided what it says, and what it was sent.
    struct Scripted {
        says: io::Cursor<Vec<u8>>,
        was_sent: Vec<u8>,
    }

    impl Read for Scripted {
        /// One byte at a time, as a slow network would.
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let one = buffer.len().min(1);
            self.says.read(&mut buffer[..one])
        }
    }

    impl Write for Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.was_sent.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn greeting(flags: u16) -> Vec<u8> {
        let mut bytes = b"NBDMAGICIHAVEOPT".to_vec();
        bytes.extend(flags.to_be_bytes());
        bytes
    }

    fn reply(option: u32, code: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = OPTION_REPLY_MAGIC.to_be_bytes().to_vec();
        for word in [option, code, data.len() as u32] {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend(data);
        bytes
    }

    fn says(parts: &[&[u8]]) -> Scripted {
        Scripted { says: io::Cursor::new(parts.concat()), was_sent: Vec::new() }
    }

    fn of_export(size_bytes: u64, flags: u16) -> Vec<u8> {
        [&[0, 0], &size_bytes.to_be_bytes()[..], &flags.to_be_bytes()].concat()
    }

    #[test]
    fn an_export_has_size_flags_and_block_sizes() {
        let sizes =
            [&[0_u8, 3][..], &512_u32.to_be_bytes(), &4096_u32.to_be_bytes(), &65536_u32.to_be_bytes()];
        let server = says(&[
            &greeting(3),
            &reply(OPTION_GO, REPLY_INFO, &of_export(1 << 20, 0b10_1101)),
            &reply(OPTION_GO, REPLY_INFO, &[0, 1, b'n']),
            &reply(OPTION_GO, REPLY_INFO, &sizes.concat()),
            &reply(OPTION_GO, REPLY_ACK, &[]),
        ]);
        let (server, export) = Negotiation::begin(server).unwrap().go("disk").unwrap();
        let expected = Export {
            size_bytes: 1 << 20,
            read_only: false,
            flushes: true,
            writes_through: true,
            trims: true,
            block_bytes_min: 512,
            block_bytes_max: Some(65536),
        };
        assert_eq!(export, expected);
        let asked = b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x0c\0\0\0\x04disk\0\x01\0\x03";
        assert_eq!(server.was_sent, asked);
    }

    #[test]
    fn a_server_without_go_is_asked_by_name() {
        for (flags, zeroes) in [(1, 124), (3, 0)] {
            let answer = [&5_u64.to_be_bytes()[..], &3_u16.to_be_bytes(), &vec![0; zeroes], b"next"].concat();
            let server = says(&[&greeting(flags), &reply(OPTION_GO, ERROR_UNSUPPORTED, b""), &answer]);
            let (mut server, export) = Negotiation::begin(server).unwrap().go("").unwrap();
            assert_eq!((export.size_bytes, export.read_only, export.trims), (5, true, false));
            assert_eq!(array::<4>(&mut server).unwrap(), *b"next");
        }
    }

    #[test]
    fn the_stream_is_replaced_after_the_server_agrees_to_encrypt() {
        let server = says(&[&greeting(3), &reply(OPTION_STARTTLS, REPLY_ACK, b"")]);
        let mut plain = Negotiation::begin(server).unwrap();
        plain.start_tls().unwrap();
        let encrypted =
            says(&[&reply(OPTION_GO, REPLY_INFO, &of_export(7, 0)), &reply(OPTION_GO, REPLY_ACK, &[])]);
        let (_, export) = plain.map(|_| Ok::<_, io::Error>(encrypted)).unwrap().go("x").unwrap();
        assert_eq!(export.size_bytes, 7);
    }

    #[test]
    fn refusals_say_what_to_do() {
        let refusal = |code, text: &[u8]| {
            let server = says(&[&greeting(3), &reply(OPTION_GO, code, text)]);
            Negotiation::begin(server).unwrap().go("disk").map(drop).unwrap_err().to_string()
        };
        assert!(refusal(ERROR_UNKNOWN_EXPORT, b"").contains("no export named \"disk\""));
        assert!(refusal(ERROR_TLS_REQUIRED, b"").contains("nbds://"));
        assert!(refusal(ERROR_POLICY, b"not today\x1b").contains("it says: not today\\u{1b}"));
        assert!(refusal(ERROR_SHUTDOWN, b"").contains("shutting down"));
        assert!(refusal(REPLY_IS_ERROR | 99, b"").contains("0x80000063"));
    }

    #[test]
    fn what_is_no_server_of_this_protocol_is_named() {
        let error = |parts: &[&[u8]]| {
            let begun = Negotiation::begin(says(parts));
            begun.and_then(|begun| begun.go("")).map(drop).unwrap_err().to_string()
        };
        assert!(error(&[b"HTTP/1.1 400 Bad Request\r\n"]).contains("not an NBD server"));
        assert!(error(&[b"NBDMAGIC\0\0\x42\x02\x81\x86\x12\x53\0\0"]).contains("2013"));
        assert!(error(&[&greeting(2)]).contains("2013"));
        assert!(error(&[&greeting(3)]).contains("closed the connection"));
        assert!(
            error(&[&greeting(3), &reply(OPTION_STARTTLS, REPLY_ACK, b"")]).contains("none of the protocol")
        );
        assert!(error(&[&greeting(3), &reply(OPTION_GO, REPLY_ACK, b"")]).contains("how large"));
        let mut endless = reply(OPTION_GO, REPLY_INFO, b"");
        endless[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(error(&[&greeting(3), &endless]).contains("none of the protocol"));
    }
}
