//! http: objects of a server, written by PUT, read by GET and deleted by DELETE, over WebDAV, S3 or Swift.
//!
//! Invariant: see `remote::http`. An operation is one request, and ends with its response; a request for a block that is an
//! object concerns the whole block, so that a short transfer does not exist.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::{SystemTime, UNIX_EPOCH};

use fiord_http::{Access, Client, EncryptionKey, Endpoint, Keys, Method, Object, Part, S3, Signer};
use fiord_options::job::JobOptions;
use fiord_options::value::{HttpMode, HttpObjectMode, Https, Utf8Text};
use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileIndex, FileUse, Need, Op,
    Queueing, Tested,
};
use fiord_sys::errno::Errno;
use fiord_sys::width::to_usize;

use crate::boxed::BoxedSync;
use crate::contract::{Arena, ArenaAccess, Engine, NamedTarget, Outcome, Slot, SyncEngine};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::remote::http::{Exchange, Response};
use crate::remote::{Shared, Verification, reason};

/// Its settings, as given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    host: String,
    tls: Option<Verification<'static>>,
    user: Option<(String, String)>,
    mode: Mode,
    region: String,
    key: Option<String>,
    key_id: Option<String>,
    session_token: Option<String>,
    encryption: Option<(String, Vec<u8>)>,
    storage_class: String,
    swift_token: Option<String>,
    /// Whether a block is an object.
    by_block: bool,
}

/// The interface, without what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    #[default]
    WebDav,
    S3,
    Swift,
}

fn text(text: &Utf8Text) -> String {
    text.0.clone()
}

impl Settings {
    /// Those of a job's options.
    fn of(options: &JobOptions) -> Settings {
        let own = &options.http;
        let given = |option: &Option<Utf8Text>| option.as_ref().map(text);
        let user = given(&own.http_user);
        let password = given(&own.http_pass).unwrap_or_default();
        let algorithm = text(&own.http_s3_sse_customer_algorithm);
        let key = own.http_s3_sse_customer_key.as_ref().map(|key| key.0.as_bytes().to_vec());
        Settings {
            host: text(&own.http_host),
            tls: match own.https {
                Https::Off => None,
                Https::On => Some(Verification::System),
                Https::Insecure => Some(Verification::None),
            },
            user: user.map(|user| (user, password)),
            mode: match own.http_mode {
                HttpMode::WebDav => Mode::WebDav,
                HttpMode::S3 => Mode::S3,
                HttpMode::Swift => Mode::Swift,
            },
            region: text(&own.http_s3_region),
            key: given(&own.http_s3_key),
            key_id: given(&own.http_s3_keyid),
            session_token: given(&own.http_s3_security_token),
            encryption: key.map(|key| (algorithm, key)),
            storage_class: text(&own.http_s3_storage_class),
            swift_token: given(&own.http_swift_auth_token),
            by_block: own.http_object_mode == HttpObjectMode::Block,
        }
    }

    /// How the store is accessed.
    fn access(&self) -> Result<Access, &'static str> {
        Ok(match self.mode {
            Mode::WebDav => Access::WebDav(self.user.clone()),
            Mode::Swift => match self.swift_token.clone().filter(|token| !token.is_empty()) {
                Some(token) => Access::Swift(token),
                None => {
                    return Err("http_mode=swift needs http_swift_auth_token=, which `swift auth` prints");
                }
            },
            Mode::S3 => {
                let (Some(id), Some(secret)) = (self.key_id.clone(), self.key.clone()) else {
                    return Err("http_mode=s3 needs http_s3_keyid= and http_s3_key=");
                };
                let encryption = match &self.encryption {
                    None => None,
                    Some((algorithm, key)) => match EncryptionKey::new(algorithm, key) {
                        Some(key) => Some(key),
                        None => {
                            return Err(
                                "http_s3_sse_customer_key= is neither 32 bytes long nor 32 bytes in base 64",
                            );
                        }
                    },
                };
                Access::S3(Box::new(S3 {
                    signer: Signer::new(Keys { id, secret, region: self.region.clone() }),
                    token: self.session_token.clone(),
                    encryption,
                    storage_class: self.storage_class.clone(),
                }))
            }
        })
    }

    /// Connects to the server.
    fn connect(&self) -> io::Result<Session> {
        let host = &self.host;
        let endpoint = Endpoint::parse(host, self.tls.is_some())
            .map_err(|wrong| io::Error::other(format!("http_host={host} {wrong}")))?;
        let access = self.access().map_err(io::Error::other)?;
        let client = Client::new(endpoint.authority.clone(), access);
        let exchange = Exchange::open(endpoint, self.tls).map_err(|error| {
            io::Error::other(format!("cannot connect to http_host={host}: {}", reason(&error)))
        })?;
        Ok(Session { client, exchange })
    }
}

/// The definition of the engine.
#[derive(Debug)]
pub struct Http;

/// Its tests, against nginx, and servers of the tests.
const TESTS: &str = "tests/servers/cases/http.rs";

const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "blocks_are_objects_of_webdav_and_the_log_has_each_of_them"),
    counts: Tested::By(TESTS, "blocks_are_objects_of_webdav_and_the_log_has_each_of_them"),
    short: Tested::Never("an object is transferred whole, or not at all"),
    interrupted: Tested::By(TESTS, "a_process_that_is_stopped_and_continued_loses_no_io"),
    error: Tested::By(TESTS, "refusals_of_the_server_are_io_errors_that_say_what_to_do"),
    gone: Tested::By(TESTS, "a_server_that_goes_away_ends_the_job_with_its_error"),
    stuck: Tested::By(TESTS, "a_server_that_does_not_answer_does_not_hold_up_the_end"),
    given_back: Tested::By(TESTS, "jobs_give_back_what_they_took"),
};

impl EngineDefinition for Http {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Named,
        settings: |options| EngineSettings::new(Settings::of(options)),
        explain: |_, errno| explain(errno),
        tests: Some(TESTED),
        example: Some(Example {
            text: "Objects of 64 KiB on nginx with WebDAV, each of them written and read back.",
            commands: EXAMPLE,
            needs: &[Need { what: "nginx (package nginx-light)", check: "nginx -v" }, Need::ROOT],
        }),
        ..EngineDescriptor::of(
            EngineName::Http,
            "objects of a server: WebDAV, S3 or Swift",
            Queueing::Synchronous,
        )
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        let paths = vec![Vec::new(); job.files].into_boxed_slice();
        let engine = HttpEngine { settings: settings.clone(), session: Shared::default(), paths, arena };
        visitor.synchronous(Ok(BoxedSync::new(engine)))
    }
}

/// A server, and a job on it.
const EXAMPLE: &str = r#"mkdir data
cat > nginx.conf <<'END'
daemon off; master_process off; pid nginx.pid;
events {}
http {
    access_log off; client_max_body_size 16m; client_body_temp_path body;
    server { listen 127.0.0.1:8087; root data; dav_methods PUT DELETE; create_full_put_path on; }
}
END
nginx -p "$PWD" -e error.log -c nginx.conf &
until test -s nginx.pid; do sleep 0.1; done
fiord --name=example --ioengine=http --http_host=localhost:8087 --filename=/dir/object \
    --rw=write --bs=64k --size=4m --verify=crc32c"#;

/// The errno for a status other than success.
fn errno_of(status: u16) -> Errno {
    match status {
        401 | 403 | 407 => Errno::EACCES,
        404 | 410 => Errno::ENOENT,
        405 | 501 => Errno::EOPNOTSUPP,
        408 | 504 => Errno::ETIMEDOUT,
        413 => Errno(libc::EFBIG),
        429 | 503 => Errno::EBUSY,
        507 => Errno::ENOSPC,
        400 | 409 | 411 | 412 | 414 | 416 => Errno::EINVAL,
        300..400 => Errno(libc::EREMCHG),
        _ => Errno::EIO,
    }
}

fn explain(errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EACCES => {
            "the server refused the user, key or token (401, 403); check them, the region and its clock"
        }
        libc::ENOENT => "the server has no such object or bucket (404); write the blocks before reading them",
        libc::EOPNOTSUPP => {
            "the server does not offer this (405, 501); for WebDAV, PUT and DELETE must be enabled"
        }
        libc::EFBIG => "the server does not take objects of this size (413); use a smaller bs=",
        libc::EBUSY => "the server is overloaded (429, 503)",
        libc::EREMCHG => "the server redirects elsewhere (3xx); set http_host= to that place",
        libc::EINVAL => {
            "the server does not understand the request (400, 409, 416); does the bucket or collection exist?"
        }
        libc::EMSGSIZE => "the object is not as long as the block; it was written with another bs=",
        libc::ECONNRESET | libc::EPIPE => "the server closed the connection; its log may say why",
        libc::EPROTO => "the server broke the protocol, or its certificate is not trusted",
        libc::EINTR => "the server did not answer, and the job was asked to stop",
        libc::EIO => "the server failed (5xx); its log may say why",
        _ => return None,
    })
}

/// A connection, and the requests that are written to it.
#[derive(Debug)]
struct Session {
    client: Client,
    exchange: Exchange,
}

/// The engine, set up.
#[derive(Debug)]
struct HttpEngine<'arena> {
    settings: Settings,
    session: Shared<Session>,
    /// Their names, by number.
    paths: Box<[Vec<u8>]>,
    arena: Arena<'arena>,
}

impl Session {
    /// Executes an operation on these bytes.
    fn execute(&mut self, op: &Op, path: &[u8], by_block: bool, bytes: &mut [u8]) -> io::Result<Outcome> {
        let (start_bytes, end_bytes) = (op.offset_bytes, op.offset_bytes + op.length_bytes);
        let block = by_block.then_some((start_bytes, end_bytes));
        let (method, part) = match op.action {
            Action::Read => (Method::Get, (!by_block).then_some(Part { start_bytes, end_bytes })),
            Action::Write => (Method::Put, None),
            Action::Trim => (Method::Delete, None),
            // A server answers when it has stored an object, and there is nothing else to wait for.
            Action::Sync | Action::DataSync | Action::RangeSync(_) => return Ok(Outcome::Done(0)),
            Action::ResetZone => return Ok(Outcome::Failed(Errno::EOPNOTSUPP)),
        };
        let (body, into): (&[u8], &mut [u8]) = match method {
            Method::Put => (bytes, &mut []),
            Method::Get => (&[], bytes),
            Method::Delete => (&[], &mut []),
        };
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let head = self.client.head(method, &Object { path, block }, part, body, seconds);
        let Response { status, body_bytes } = self.exchange.exchange(head, body, into)?;
        Ok(match (status, method) {
            (200..300, Method::Get) if body_bytes != op.length_bytes => {
                Outcome::Failed(Errno(libc::EMSGSIZE))
            }
            (200..300, _) => Outcome::whole(op),
            (status, _) => Outcome::Failed(errno_of(status)),
        })
    }
}

impl<'arena> Engine<'arena> for HttpEngine<'arena> {
    fn open(&mut self, file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
        let place = self.paths.get_mut(file as usize).ok_or_else(|| io::Error::from(Errno::EBADF))?;
        *place = AsRef::<OsStr>::as_ref(target.name).as_bytes().to_vec();
        self.session.open(|| self.settings.connect())
    }

    fn detach(&mut self, _file: FileIndex) {
        self.session.close();
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> SyncEngine<'arena> for HttpEngine<'arena> {
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        let HttpEngine { session, paths, arena, settings } = self;
        let (Some(session), Some(path)) = (session.get(), paths.get(op.file as usize)) else {
            return Outcome::Failed(Errno::EBADF);
        };
        let start = to_usize(op.buffer_offset_bytes);
        let bytes = match op.action {
            Action::Read | Action::Write => {
                &mut ArenaAccess::of(arena).bytes_mut(slot)[start..start + to_usize(op.length_bytes)]
            }
            Action::Trim | Action::ResetZone | Action::Sync | Action::DataSync | Action::RangeSync(_) => {
                &mut []
            }
        };
        session.execute(&op, path, settings.by_block, bytes).unwrap_or_else(|error| {
            let by_kind = [
                (io::ErrorKind::Interrupted, Errno::EINTR),
                (io::ErrorKind::UnexpectedEof, Errno(libc::ECONNRESET)),
                (io::ErrorKind::TimedOut, Errno::ETIMEDOUT),
            ];
            let found = by_kind.iter().find(|(kind, _)| *kind == error.kind()).map(|(_, errno)| *errno);
            let errno = found.or_else(|| Errno::of(&error)).unwrap_or(Errno(libc::EPROTO));
            Outcome::Failed(errno)
        })
    }
}
