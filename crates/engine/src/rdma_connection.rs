//! Connections over RDMA as fio makes them: which end waits, how both introduce themselves, and how they end.
//!
//! Invariant: the other end has the key of this end's buffers only while a job's I/Os have them, and loses it before they
//! are given back.
//!
//! A job that reads is the end that waits, and one that writes the end that connects, whatever they do then: the end that
//! connects says what that is (`rdma_message.rs`).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::time::{Duration, Instant};

use fiord_options::job::JobOptions;
use fiord_options::value::{RdmaVerb, RwKind, Utf8Text};
use fiord_sys::errno::{Errno, Explained, error_text};
use fiord_sys::library::LibraryError;
use fiord_sys::library::queue_pair::{Ended, Memory, QueuePair, RequestResult};
use fiord_sys::library::rdma::{Channel, Event, Identifier, IdentifierKey};
use fiord_sys::signal;

use crate::library_engine::{GRACE, LOOK_EVERY};
use crate::rdma_message::{Buffer, Introduction, MESSAGE_BYTES};

/// How long a sender waits after the other end's answer: a fio there posts its receives after it.
const RECEIVES_AFTER: Duration = Duration::from_millis(500);

/// How long an end that is done waits for the other to disconnect, so that nothing on its way to that end is lost.
const LINGER: Duration = Duration::from_millis(500);

/// How long the message that an end is done may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// What this end does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Writes to the other end's memory.
    Write,
    /// Reads it.
    Read,
    /// Sends messages.
    Send,
    /// Receives them.
    Receive,
    /// Waits while the other end writes to this one's memory or reads it.
    Lend,
}

impl Task {
    /// Of the end that connects.
    fn of(verb: RdmaVerb) -> Task {
        match verb {
            RdmaVerb::Write => Task::Write,
            RdmaVerb::Read => Task::Read,
            RdmaVerb::Send => Task::Send,
            RdmaVerb::Recv => Task::Receive,
        }
    }

    /// Of the end that waits, when the other does this.
    fn opposite(verb: RdmaVerb) -> Task {
        match verb {
            RdmaVerb::Write | RdmaVerb::Read => Task::Lend,
            RdmaVerb::Send => Task::Receive,
            RdmaVerb::Recv => Task::Send,
        }
    }
}

/// The options of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The other end.
    pub host: Option<String>,
    /// The address of this end.
    pub bind: Option<String>,
    /// The port of the first clone.
    pub port: Option<u32>,
    /// What the end that connects does.
    pub verb: RdmaVerb,
    /// Whether this end waits.
    pub waits: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::of(&JobOptions::default())
    }
}

impl Settings {
    /// Those of a job's options.
    pub(crate) fn of(options: &JobOptions) -> Settings {
        let own = &options.rdma;
        let text = |text: &Utf8Text| text.0.clone();
        Settings {
            host: own.hostname.as_ref().map(text),
            bind: own.bindname.as_ref().map(text),
            port: own.port,
            verb: own.verb,
            waits: options.access.rw.kind != RwKind::Write,
        }
    }
}

/// The buffers of one end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buffers {
    /// Where the first begins.
    pub(crate) start: *mut u8,
    /// From one to the next.
    pub(crate) stride_bytes: usize,
    /// How many there are.
    pub(crate) count: u32,
    /// The largest block of the job.
    pub(crate) block_bytes_max: u32,
}

impl Buffers {
    fn memory(&self) -> Memory {
        Memory { start: self.start, length_bytes: self.stride_bytes * self.count as usize }
    }

    fn introduction(&self, verb: Option<RdmaVerb>, key: u32) -> Introduction {
        let buffer = |index| Buffer {
            address: self.start as u64 + u64::from(index) * self.stride_bytes as u64,
            key,
            length_bytes: self.block_bytes_max,
        };
        Introduction {
            verb,
            block_bytes_max: self.block_bytes_max,
            buffers: (0..self.count).map(buffer).collect(),
        }
    }
}

/// Connections that were asked for and not yet accepted: those of later loops may be asked for while one is there.
type Requested = Rc<RefCell<VecDeque<Identifier>>>;

/// One end of connections, of one job.
#[derive(Debug)]
pub(crate) struct Endpoint {
    settings: Settings,
    /// The port of this clone.
    port: u16,
    channel: Rc<Channel>,
    /// If this end waits, what the other connects to.
    listener: Option<Identifier>,
    requested: Requested,
}

impl Endpoint {
    /// The end of this clone of a job. One that waits can be reached from here on.
    ///
    /// # Errors
    /// The call that failed.
    pub(crate) fn new(settings: &Settings, clone: u32) -> Result<Endpoint, LibraryError> {
        let port = u16::try_from(settings.port.unwrap_or(0).saturating_add(clone)).unwrap_or(u16::MAX);
        let channel = Channel::open()?;
        let mut endpoint = Endpoint {
            settings: settings.clone(),
            port,
            channel,
            listener: None,
            requested: Requested::default(),
        };
        if settings.waits {
            let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
            let at = endpoint.own_address().map_err(|error| {
                LibraryError::Call("getaddrinfo", Errno::of(&error).unwrap_or(Errno(libc::EINVAL)))
            })?;
            let listener = Identifier::new(&endpoint.channel)?;
            listener.listen(&at.map_or(everywhere, |at| SocketAddr::new(at.ip(), port)))?;
            endpoint.listener = Some(listener);
        }
        Ok(endpoint)
    }

    /// The address that `bindname` stands for; port 0.
    fn own_address(&self) -> io::Result<Option<SocketAddr>> {
        let name = self.settings.bind.as_deref().filter(|name| !name.is_empty());
        name.map(|name| resolve("bindname", name, 0)).transpose()
    }

    /// Makes a connection: waits for the other end, or connects to it.
    ///
    /// # Safety
    /// The buffers are mapped until the connection is dropped.
    ///
    /// # Errors
    /// Why there is none, and what to do.
    pub(crate) unsafe fn open(&mut self, buffers: &Buffers) -> io::Result<Connection> {
        let identifier = if self.settings.waits { self.next_request()? } else { self.resolved()? };
        let pair = QueuePair::new(identifier, buffers.count, MESSAGE_BYTES);
        let pair = pair.map_err(|error| self.refused(error))?;
        let mut connection = Connection::of(pair, Rc::clone(&self.requested));
        connection.receive_message()?;
        let asked = if self.settings.waits { connection.pair.accept() } else { connection.pair.connect() };
        asked.map_err(|error| self.refused(error))?;
        let key = connection.pair.key();
        self.wait_for(key, |event| matches!(event, Event::Established))?;
        connection.pair.hurry_senders();
        // SAFETY: the caller vouches for the buffers.
        unsafe {
            match self.settings.waits {
                true => self.answer(&mut connection, buffers)?,
                false => self.introduce(&mut connection, buffers)?,
            }
        }
        Ok(connection)
    }

    /// The next connection that the other end asks for.
    fn next_request(&mut self) -> io::Result<Identifier> {
        let mut patience = Patience::new(None);
        loop {
            if let Some(identifier) = self.requested.borrow_mut().pop_front() {
                return Ok(identifier);
            }
            // Others are about connections that were given up.
            self.take_event()?;
            if self.requested.borrow().is_empty() {
                patience.check(self.channel.wait(LOOK_EVERY))?;
            }
        }
    }

    /// An identifier that has a device and a way to the other end.
    fn resolved(&mut self) -> io::Result<Identifier> {
        let to = resolve("hostname", self.settings.host.as_deref().unwrap_or_default(), self.port)?;
        let from = self.own_address()?;
        let identifier = Identifier::new(&self.channel).map_err(|error| self.refused(error))?;
        identifier.resolve(from.as_ref(), &to).map_err(|error| self.refused(error))?;
        self.wait_for(identifier.key(), |event| matches!(event, Event::AddressResolved))?;
        identifier.resolve_route().map_err(|error| self.refused(error))?;
        self.wait_for(identifier.key(), |event| matches!(event, Event::RouteResolved))?;
        Ok(identifier)
    }

    /// Takes the next event that has arrived; what others ask for is kept.
    fn take_event(&mut self) -> io::Result<Option<(IdentifierKey, Event)>> {
        match self.channel.take().map_err(|error| self.refused(error))? {
            Some((key, Event::Requested(identifier))) => {
                self.requested.borrow_mut().push_back(identifier);
                Ok(Some((key, Event::Other)))
            }
            event => Ok(event),
        }
    }

    /// Waits for an event of this identifier.
    fn wait_for(&mut self, key: IdentifierKey, wanted: impl Fn(&Event) -> bool) -> io::Result<()> {
        let mut patience = Patience::new(None);
        loop {
            match self.take_event()? {
                Some((about, event)) if about == key && wanted(&event) => return Ok(()),
                Some((about, Event::Failed(call, errno))) if about == key => {
                    return Err(self.refused(LibraryError::Call(call, errno)));
                }
                Some((about, Event::Disconnected)) if about == key => {
                    return Err(gone_early());
                }
                Some(_) => {}
                None => patience.check(self.channel.wait(LOOK_EVERY))?,
            }
        }
    }

    /// The end that waits: takes the other's introduction. Its own follows when its first I/Os are there
    /// (`Connection::answer`).
    ///
    /// # Safety
    /// As `open`.
    unsafe fn answer(&self, connection: &mut Connection, buffers: &Buffers) -> io::Result<()> {
        connection.wait_for_message(Ended::ControlReceived)?;
        let other = connection.introduction()?;
        let verb = other.verb.ok_or_else(|| strange("it does not say what it does"))?;
        connection.task = Task::opposite(verb);
        check_blocks(verb, other.block_bytes_max, buffers.block_bytes_max)?;
        // SAFETY: the caller vouches for the memory. Parts of it are used by requests that `pair` is given, and by the other end
        // as the invariant of this file says.
        let registered = unsafe { connection.pair.register(buffers.memory(), connection.task == Task::Lend) };
        registered.map_err(|error| self.refused(error))?;
        let key = if connection.task == Task::Lend { connection.pair.remote_key() } else { 0 };
        connection.unsent = Some(buffers.introduction(None, key).message());
        match connection.task {
            // The message that the other end is done.
            Task::Lend => connection.receive_message(),
            // Before the first message that it sends.
            Task::Send => connection.answer().map_err(io::Error::from),
            Task::Receive | Task::Write | Task::Read => Ok(()),
        }
    }

    /// The end that connects: introduces itself, and takes the other's answer. The other end has no use for the key of its buffers,
    /// and is given none.
    ///
    /// # Safety
    /// As `open`.
    unsafe fn introduce(&self, connection: &mut Connection, buffers: &Buffers) -> io::Result<()> {
        let verb = self.settings.verb;
        // iWARP reads into memory that the other end could write to if it had the key.
        let is_lent = verb == RdmaVerb::Read;
        // SAFETY: the caller vouches for the memory. Parts of it are used by requests that `pair` is given, and not by the other
        // end.
        let registered = unsafe { connection.pair.register(buffers.memory(), is_lent) };
        registered.map_err(|error| self.refused(error))?;
        let own = buffers.introduction(Some(verb), 0).message();
        connection.send_message(&own)?;
        connection.wait_for_message(Ended::ControlSent)?;
        connection.wait_for_message(Ended::ControlReceived)?;
        let other = connection.introduction()?;
        connection.task = Task::of(verb);
        check_blocks(verb, buffers.block_bytes_max, other.block_bytes_max)?;
        match connection.task {
            Task::Write | Task::Read => {
                let is_short = |buffer: &Buffer| buffer.length_bytes < buffers.block_bytes_max;
                if other.buffers.is_empty() || other.buffers.iter().any(is_short) {
                    return Err(strange("its buffers are smaller than its blocks, or it has none"));
                }
                connection.farewell = Some(own);
            }
            Task::Send => connection.rest(RECEIVES_AFTER)?,
            Task::Receive | Task::Lend => {}
        }
        connection.remote = other.buffers;
        Ok(())
    }

    /// An error with its reason, and what to do.
    fn refused(&self, error: LibraryError) -> io::Error {
        let LibraryError::Call(call, errno) = error else { return io::Error::other("the library is gone") };
        let (host, port) = (self.settings.host.as_deref().unwrap_or_default(), self.port);
        let reason = match (call, errno.0) {
            ("rdma_connect", libc::ECONNREFUSED) => format!(
                "{host}, port {port}: nobody waits there: begin the other end first (rw=read), or check the port"
            ),
            ("rdma_connect", libc::ETIMEDOUT) => {
                format!("{host}, port {port}: it does not answer: it is off, or a firewall drops the packets")
            }
            ("rdma_resolve_addr" | "rdma_resolve_route", _) => format!(
                "{call}: no RDMA device of this machine reaches {host}: `rdma link` lists them; check hostname and bindname"
            ),
            (_, _) => format!("{call}: {}", cause_of(call, errno.0)),
        };
        Explained::with(&io::Error::from(errno), reason)
    }
}

/// The usual cause of an error of a call, and what to do.
pub(crate) fn cause_of(call: &str, errno: i32) -> &'static str {
    match (call, errno) {
        ("rdma_create_event_channel", _) => {
            "this machine has no RDMA device, or no driver for it: `rdma link` lists them (apt-get install iproute2 \
             rdma-core ibverbs-providers; modprobe rdma_ucm)"
        }
        ("getaddrinfo", _) => "bindname is not known: use an address of this machine",
        ("rdma_bind_addr", libc::EADDRINUSE) => "another program listens there: use another port",
        // librdmacm says so of a port in use, too.
        ("rdma_bind_addr", libc::EADDRNOTAVAIL) => {
            "another program listens there, or bindname is not an address of this machine: use another port or bindname"
        }
        ("rdma_bind_addr", libc::ENODEV) => {
            "bindname is not an address of an RDMA device: `rdma link` lists them"
        }
        ("ibv_reg_mr", libc::ENOMEM) => {
            "the buffers need more locked memory than the limit allows: raise it (ulimit -l), or use a smaller iodepth or bs"
        }
        ("ibv_reg_mr", _) => "the device cannot use this memory: use mem=malloc or mem=mmap",
        ("ibv_create_cq" | "rdma_create_qp", libc::EINVAL | libc::ENOMEM) => {
            "the device has no room for so many requests: use a smaller iodepth"
        }
        _ => "see the kernel's log (dmesg)",
    }
}

/// The first address of a name.
fn resolve(option: &str, name: &str, port: u16) -> io::Result<SocketAddr> {
    let unknown = io::Error::from_raw_os_error(libc::EINVAL);
    let no = |why: String| Explained::with(&unknown, format!("{option}={name} {why}"));
    let mut found = (name, port)
        .to_socket_addrs()
        .map_err(|error| no(format!("is not known: {}", error_text(&error))))?;
    found.next().ok_or_else(|| no("has no address".to_string()))
}

/// The blocks of the end that does something fit the buffers of the one it does it with.
fn check_blocks(verb: RdmaVerb, connects_bytes: u32, waits_bytes: u32) -> io::Result<()> {
    let (block_bytes, buffer_bytes) = match verb {
        RdmaVerb::Write | RdmaVerb::Read | RdmaVerb::Send => (connects_bytes, waits_bytes),
        RdmaVerb::Recv => (waits_bytes, connects_bytes),
    };
    if block_bytes <= buffer_bytes {
        return Ok(());
    }
    let why = format!(
        "the blocks of one end have up to {block_bytes} bytes, and the buffers of the other {buffer_bytes}: use the same bs \
         at both"
    );
    Err(Explained::with(&Errno(libc::EMSGSIZE).into(), why))
}

/// The other end is not fio.
fn strange(why: &str) -> io::Error {
    let why = format!("the other end does not speak as fio's engine rdma does: {why}");
    Explained::with(&Errno(libc::EPROTO).into(), why)
}

/// The other end has gone before it had introduced itself.
fn gone_early() -> io::Error {
    let why = "the other end disconnected before it had introduced itself: see its messages";
    Explained::with(&Errno(libc::ECONNRESET).into(), why)
}

/// The error number alone.
fn without_call(error: LibraryError) -> io::Error {
    match error {
        LibraryError::Call(_, errno) => errno.into(),
        LibraryError::Unavailable(_) | LibraryError::Stopped(_) => Errno(libc::EIO).into(),
    }
}

/// How long this end waits for the other.
#[derive(Debug)]
struct Patience {
    until: Option<Instant>,
    stopping_since: Option<Instant>,
}

impl Patience {
    fn new(at_most: Option<Duration>) -> Patience {
        Patience { until: at_most.map(|time| Instant::now() + time), stopping_since: None }
    }

    /// Whether there is time left, after a wait that ended like this.
    fn check(&mut self, waited: io::Result<()>) -> io::Result<()> {
        waited?;
        if signal::stop_requested().is_some() {
            // A worker that is asked to stop is woken; the signal to do so may have come before the wait.
            let since = *self.stopping_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= GRACE {
                return Err(Errno(libc::EINTR).into());
            }
        }
        match self.until {
            Some(until) if Instant::now() >= until => Err(Errno(libc::ETIMEDOUT).into()),
            _ => Ok(()),
        }
    }
}

/// A connection that is made.
#[derive(Debug)]
pub(crate) struct Connection {
    pair: QueuePair,
    requested: Requested,
    task: Task,
    /// The buffers of the other end, of an end that reads or writes them.
    remote: Vec<Buffer>,
    /// Which of them is next.
    next: usize,
    /// The introduction of the end that waits, until it is sent.
    unsent: Option<Vec<u8>>,
    /// What tells the other end that this one is done.
    farewell: Option<Vec<u8>>,
    /// What the control messages have done since they were last asked for.
    was_sent: bool,
    was_received: bool,
    /// Whether the other end has disconnected.
    is_lost: bool,
}

impl Connection {
    /// One of which only the queue pair is there.
    fn of(pair: QueuePair, requested: Requested) -> Connection {
        Connection {
            pair,
            requested,
            task: Task::Lend,
            remote: Vec::new(),
            next: 0,
            unsent: None,
            farewell: None,
            was_sent: false,
            was_received: false,
            is_lost: false,
        }
    }

    /// What this end does.
    pub(crate) fn task(&self) -> Task {
        self.task
    }

    /// Its requests.
    pub(crate) fn pair(&self) -> &QueuePair {
        &self.pair
    }

    /// Whether the other end has disconnected.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Whether the other end has said that it is done.
    pub(crate) fn is_over(&self) -> bool {
        self.was_received
    }

    /// The next of the other end's buffers, in turn.
    #[inline]
    pub(crate) fn next_remote(&mut self) -> Option<Buffer> {
        let buffer = self.remote.get(self.next).or_else(|| self.remote.first()).copied();
        self.next = if self.next + 1 < self.remote.len() { self.next + 1 } else { 0 };
        buffer
    }

    /// The end that waits introduces itself, unless it has.
    pub(crate) fn answer(&mut self) -> Result<(), Errno> {
        match self.unsent.take() {
            Some(message) => self.pair.send_control(&message),
            None => Ok(()),
        }
    }

    /// Takes what has ended, and what has happened; each request is passed on, and whether the other end had disconnected.
    pub(crate) fn take(&mut self, mut ended: impl FnMut(*mut c_void, RequestResult, bool)) -> io::Result<()> {
        loop {
            while let Some((request, result)) = self.pair.take()? {
                match request {
                    Ended::Ticket(ticket) => ended(ticket, result, self.is_lost),
                    Ended::ControlSent => self.was_sent |= result.is_ok(),
                    Ended::ControlReceived => self.was_received |= result.is_ok(),
                }
                // Without control messages the ends do not know of each other.
                self.is_lost |= !matches!(request, Ended::Ticket(_)) && result.is_err();
            }
            match self.pair.events().take().map_err(without_call)? {
                Some((about, Event::Disconnected)) if about == self.pair.key() => {
                    self.is_lost = true;
                    self.pair.disconnect();
                }
                Some((_, Event::Requested(identifier))) => {
                    // There is one for each loop of the other end.
                    self.requested.borrow_mut().push_back(identifier);
                }
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }

    /// Waits for something to take, for at most so long.
    ///
    /// # Errors
    /// `EINTR` after a signal.
    pub(crate) fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        self.pair.wait(at_most)
    }

    /// Asks to be woken by what ends from now on.
    pub(crate) fn arm(&self) -> io::Result<()> {
        self.pair.arm().map_err(without_call)
    }

    /// Every request ends, with an error unless it was done before.
    pub(crate) fn cancel(&mut self) {
        self.pair.disconnect();
    }

    fn receive_message(&mut self) -> io::Result<()> {
        self.was_received = false;
        self.pair.receive_control().map_err(io::Error::from)
    }

    fn send_message(&mut self, message: &[u8]) -> io::Result<()> {
        self.was_sent = false;
        self.pair.send_control(message).map_err(io::Error::from)
    }

    /// Waits until a control message has arrived or is sent, while there are no other requests.
    fn wait_for_message(&mut self, which: Ended) -> io::Result<()> {
        self.wait_until(None, |connection| match which {
            Ended::ControlSent => connection.was_sent,
            Ended::ControlReceived | Ended::Ticket(_) => connection.was_received,
        })
    }

    fn wait_until(
        &mut self,
        at_most: Option<Duration>,
        is_done: impl Fn(&Connection) -> bool,
    ) -> io::Result<()> {
        let mut patience = Patience::new(at_most);
        loop {
            self.arm()?;
            self.take(|_, _, _| {})?;
            if is_done(self) {
                return Ok(());
            }
            if self.is_lost {
                return Err(gone_early());
            }
            let waited = self.wait(at_most.unwrap_or(LOOK_EVERY).min(LOOK_EVERY));
            patience.check(waited)?;
        }
    }

    /// Waits for some time.
    fn rest(&mut self, time: Duration) -> io::Result<()> {
        match self.wait_until(Some(time), |_| false) {
            Err(error) if Errno::of(&error) == Some(Errno(libc::ETIMEDOUT)) => Ok(()),
            other => other,
        }
    }

    /// The introduction that has arrived.
    fn introduction(&self) -> io::Result<Introduction> {
        let message = self.pair.received_control();
        Introduction::of(message).ok_or_else(|| strange("its first message is another"))
    }

    /// Ends the connection. Nothing is in flight.
    pub(crate) fn close(mut self) {
        if self.is_lost {
            return;
        }
        // If the other end cannot be told, it sees that the connection has ended.
        let _ = match (self.farewell.take(), self.task) {
            (Some(message), _) => self
                .send_message(&message)
                .and_then(|()| self.wait_until(Some(FAREWELL), |connection| connection.was_sent)),
            (None, Task::Lend | Task::Receive) => {
                self.wait_until(Some(LINGER), |connection| connection.is_lost)
            }
            (None, Task::Write | Task::Read | Task::Send) => Ok(()),
        };
    }
}
