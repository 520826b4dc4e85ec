//! Queue pairs of RDMA connections: requests on registered memory, and their completions.
//!
//! Invariant: what a pair is made of is destroyed after it: its memory regions, its completion queue, its domain, its identifier.
//! No request can reach memory afterwards.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::io;
use std::ptr;
use std::rc::Rc;
use std::time::Duration;

use super::LibraryError;
use super::rdma::{
    Channel, Identifier, IdentifierKey, checked, failed, pointer, readable, set_nonblocking, wait,
};
use super::verbs::{
    CompletionChannel, CompletionQueue, ConnectionParameters, MemoryRegion, QueuePairAttributes,
    QueuePairSetup, ReceiveRequest, ScatterEntry, SendRequest, Verbs, WorkCompletion,
};
use crate::errno::Errno;

/// `IBV_QPT_RC`.
const RELIABLE_CONNECTION: c_int = 2;

/// `IBV_SEND_SIGNALED`.
const SIGNALED: c_uint = 2;

/// `IBV_ACCESS_LOCAL_WRITE`, and with it the other end's writes and reads.
const LOCAL_ACCESS: c_int = 1;
const REMOTE_ACCESS: c_int = LOCAL_ACCESS | 2 | 4;

/// `RDMA_MAX_RESP_RES` and `RDMA_MAX_INIT_DEPTH`: as many reads in flight as both devices can.
const READS_MAX: u8 = 0xff;

/// For how often a message is sent again if the other end has posted no receive: for ever.
const FOR_EVER: u8 = 7;

/// How long the other end waits before it sends such a message again, as the code of 0.64 ms: the connection manager's own
/// setting is 655 ms.
const NOT_READY_TIMER: u8 = 12;

/// `IBV_QP_MIN_RNR_TIMER`.
const SET_NOT_READY_TIMER: c_int = 1 << 15;

/// The identifiers of requests of the control buffers; others are tickets, which are addresses.
const CONTROL_SENT: u64 = 1;
const CONTROL_RECEIVED: u64 = 2;

/// A request of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Writes to the other end's memory.
    Write(RemotePart),
    /// Reads it.
    Read(RemotePart),
    /// Sends a message.
    Send,
    /// Receives one.
    Receive,
}

/// A part of the other end's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemotePart {
    /// Its address there.
    pub address: u64,
    /// The key that gives access to it.
    pub key: u32,
}

/// A request that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The control message was sent.
    ControlSent,
    /// One was received.
    ControlReceived,
    /// The request of this ticket.
    Ticket(*mut c_void),
}

/// How a request ended: its bytes, or an error.
pub type RequestResult = Result<u32, Errno>;

/// The memory that a queue pair may use.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Where it starts.
    pub start: *mut u8,
    /// Its length.
    pub length_bytes: usize,
}

/// A queue pair of an identifier, with all that belongs to it, and a buffer for a control message each way.
#[derive(Debug)]
pub struct QueuePair {
    verbs: &'static Verbs,
    identifier: Identifier,
    domain: *mut c_void,
    channel: *mut CompletionChannel,
    queue: *mut CompletionQueue,
    has_pair: bool,
    data: Cell<*mut MemoryRegion>,
    control: *mut MemoryRegion,
    /// The message that was received, then the one to send.
    control_bytes: Box<[u8]>,
    has_disconnected: bool,
}

impl QueuePair {
    /// That of an identifier whose device is known, for so many requests of each kind at once, with control messages of so many
    /// bytes.
    ///
    /// # Errors
    /// The call that failed.
    pub fn new(
        identifier: Identifier,
        requests: u32,
        control_bytes: usize,
    ) -> Result<QueuePair, LibraryError> {
        let verbs = Verbs::get()?;
        let mut pair = QueuePair {
            verbs,
            identifier,
            domain: ptr::null_mut(),
            channel: ptr::null_mut(),
            queue: ptr::null_mut(),
            has_pair: false,
            data: Cell::new(ptr::null_mut()),
            control: ptr::null_mut(),
            control_bytes: vec![0; 2 * control_bytes].into_boxed_slice(),
            has_disconnected: false,
        };
        // SAFETY: the identifier is open, and has a device.
        let context = unsafe { (*pair.identifier.raw).context };
        if context.is_null() {
            return Err(LibraryError::Call("rdma_create_qp", Errno(libc::ENODEV)));
        }
        let requests = requests.saturating_add(1);
        let completions = c_int::try_from(requests.saturating_mul(2)).unwrap_or(c_int::MAX);
        // SAFETY: the device is open while the identifier is. Each object is made of those before it, which are destroyed
        // after it (`drop`). The control bytes do not move, and are freed after their region is.
        unsafe {
            pair.domain = pointer("ibv_alloc_pd", (verbs.ibv_alloc_pd)(context))?;
            pair.channel = pointer("ibv_create_comp_channel", (verbs.ibv_create_comp_channel)(context))?;
            set_nonblocking((*pair.channel).fd).map_err(|_| failed("fcntl"))?;
            let queue = (verbs.ibv_create_cq)(context, completions, ptr::null_mut(), pair.channel, 0);
            pair.queue = pointer("ibv_create_cq", queue)?;
            pair.create(requests)?;
            let (start, length) = (pair.control_bytes.as_mut_ptr().cast(), pair.control_bytes.len());
            let control = (verbs.ibv_reg_mr)(pair.domain, start, length, LOCAL_ACCESS);
            pair.control = pointer("ibv_reg_mr", control)?;
        }
        pair.arm()?;
        Ok(pair)
    }

    /// Requests use this memory from here on, and so does the other end if it is lent to it.
    ///
    /// # Safety
    /// The memory is mapped until this is dropped. While a request uses a part of it, or the other end has the key of memory that
    /// is lent to it, nobody else does.
    ///
    /// # Errors
    /// The call that failed.
    pub unsafe fn register(&self, memory: Memory, is_lent: bool) -> Result<(), LibraryError> {
        let Memory { start, length_bytes } = memory;
        let access = if is_lent { REMOTE_ACCESS } else { LOCAL_ACCESS };
        // SAFETY: the domain exists, and the caller vouches for the memory.
        let region = unsafe { (self.verbs.ibv_reg_mr)(self.domain, start.cast(), length_bytes, access) };
        let region = pointer("ibv_reg_mr", region)?;
        self.forbid_access();
        self.data.set(region);
        Ok(())
    }

    /// Makes the pair itself.
    fn create(&mut self, requests: u32) -> Result<(), LibraryError> {
        let mut setup = QueuePairSetup {
            context: ptr::null_mut(),
            send_queue: self.queue,
            receive_queue: self.queue,
            shared_receive_queue: ptr::null_mut(),
            sends_max: requests,
            receives_max: requests,
            send_entries_max: 1,
            receive_entries_max: 1,
            inline_bytes_max: 0,
            kind: RELIABLE_CONNECTION,
            signals_all: 0,
        };
        let functions = self.identifier.channel.functions;
        // SAFETY: the identifier is open and has a device, to which domain and queue belong.
        let answer = unsafe { (functions.rdma_create_qp)(self.identifier.raw, self.domain, &raw mut setup) };
        checked("rdma_create_qp", answer)?;
        self.has_pair = true;
        Ok(())
    }

    /// By what events are known to be about it.
    pub fn key(&self) -> IdentifierKey {
        self.identifier.key()
    }

    /// The channel of its events.
    pub fn events(&self) -> &Rc<Channel> {
        &self.identifier.channel
    }

    /// The key of the memory, with which the other end reads and writes it if it is lent.
    pub fn remote_key(&self) -> u32 {
        let region = self.data.get();
        // SAFETY: the region is registered unless it is null.
        if region.is_null() { 0 } else { unsafe { (*region).remote_key } }
    }

    /// The other end can neither read nor write the memory any more; nor can requests of this end.
    pub fn forbid_access(&self) {
        let region = self.data.replace(ptr::null_mut());
        if !region.is_null() {
            // SAFETY: the region is registered, and forgotten by this.
            unsafe { (self.verbs.ibv_dereg_mr)(region) };
        }
    }

    fn parameters() -> ConnectionParameters {
        ConnectionParameters {
            private_data: ptr::null(),
            private_data_bytes: 0,
            responder_resources: READS_MAX,
            initiator_depth: READS_MAX,
            flow_control: 0,
            retry_count: 7,
            receiver_not_ready_retry_count: FOR_EVER,
            shared_receive_queue: 0,
            queue_pair_number: 0,
        }
    }

    /// Asks the other end for the connection; `Event::Established` follows.
    ///
    /// # Errors
    /// The call that failed.
    pub fn connect(&self) -> Result<(), LibraryError> {
        let mut parameters = QueuePair::parameters();
        let functions = self.identifier.channel.functions;
        // SAFETY: the identifier is open, and the parameters live during the call.
        let answer = unsafe { (functions.rdma_connect)(self.identifier.raw, &raw mut parameters) };
        checked("rdma_connect", answer)
    }

    /// Accepts the connection that the other end asked for; `Event::Established` follows.
    ///
    /// # Errors
    /// The call that failed.
    pub fn accept(&self) -> Result<(), LibraryError> {
        let mut parameters = QueuePair::parameters();
        let functions = self.identifier.channel.functions;
        // SAFETY: the identifier is open, and the parameters live during the call.
        let answer = unsafe { (functions.rdma_accept)(self.identifier.raw, &raw mut parameters) };
        checked("rdma_accept", answer)
    }

    /// Of a connection that is made: the other end sends a message for which there is no receive again soon. A device that
    /// cannot change this has a longer time.
    pub fn hurry_senders(&self) {
        let mut attributes = QueuePairAttributes {
            before: [0; 128],
            receiver_not_ready_timer: NOT_READY_TIMER,
            after: [0; 15],
        };
        // SAFETY: the pair exists, and the attributes live during the call.
        unsafe {
            let pair = (*self.identifier.raw).queue_pair;
            (self.verbs.ibv_modify_qp)(pair, &raw mut attributes, SET_NOT_READY_TIMER);
        }
    }

    /// Ends the connection: the other end is told, and every request ends, with an error unless it was done before.
    pub fn disconnect(&mut self) {
        if !std::mem::replace(&mut self.has_disconnected, true) {
            // SAFETY: the identifier is open. If the connection was never made the call fails.
            unsafe { (self.identifier.channel.functions.rdma_disconnect)(self.identifier.raw) };
        }
    }

    /// Where each control message begins in their bytes.
    fn control_length(&self) -> usize {
        self.control_bytes.len() / 2
    }

    /// The control message that was received last; of a completion `Ended::ControlReceived`, until the next
    /// `receive_control`.
    pub fn received_control(&self) -> &[u8] {
        &self.control_bytes[..self.control_length()]
    }

    /// Receives the next control message.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn receive_control(&mut self) -> Result<(), Errno> {
        let length = self.control_length();
        let start = self.control_bytes.as_mut_ptr();
        // SAFETY: the region is registered while the pair exists.
        let key = unsafe { (*self.control).local_key };
        // SAFETY: the first half of the bytes is the device's until the completion.
        unsafe { self.post(Request::Receive, CONTROL_RECEIVED, (start, length, key)) }
    }

    /// Sends a control message, which is as long as all of them; of those before it, none is on its way.
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn send_control(&mut self, message: &[u8]) -> Result<(), Errno> {
        let length = self.control_length();
        self.control_bytes[length..].copy_from_slice(message);
        // SAFETY: the second half of the bytes begins there.
        let start = unsafe { self.control_bytes.as_mut_ptr().add(length) };
        // SAFETY: the region is registered while the pair exists.
        let key = unsafe { (*self.control).local_key };
        // SAFETY: the second half of the bytes is the device's until the completion.
        unsafe { self.post(Request::Send, CONTROL_SENT, (start, length, key)) }
    }

    /// Starts a request on a part of the memory; `take` returns it when it has ended.
    ///
    /// # Safety
    /// The part is in the memory of this pair, and nobody else uses it until the request has ended. The ticket is the address
    /// of something.
    ///
    /// # Errors
    /// The driver's refusal; `ENOTCONN` after `forbid_access`.
    #[inline]
    pub unsafe fn start(
        &self,
        request: Request,
        buffer: *mut u8,
        length_bytes: usize,
        ticket: *mut c_void,
    ) -> Result<(), Errno> {
        let region = self.data.get();
        if region.is_null() {
            return Err(Errno(libc::ENOTCONN));
        }
        // SAFETY: the region is registered.
        let key = unsafe { (*region).local_key };
        // SAFETY: as the caller says.
        unsafe { self.post(request, ticket as u64, (buffer, length_bytes, key)) }
    }

    /// Posts a request on memory of this key.
    ///
    /// # Safety
    /// The memory is registered with the key, and nobody else uses it until the request has ended.
    #[inline]
    unsafe fn post(
        &self,
        request: Request,
        id: u64,
        (start, length_bytes, local_key): (*mut u8, usize, u32),
    ) -> Result<(), Errno> {
        let length_bytes = u32::try_from(length_bytes).map_err(|_| Errno(libc::EMSGSIZE))?;
        let mut entry = ScatterEntry { address: start as u64, length_bytes, local_key };
        let (next, list, list_length) = (ptr::null_mut(), &raw mut entry, 1);
        // `enum ibv_wr_opcode`.
        let (opcode, remote) = match request {
            Request::Write(part) => (0, part),
            Request::Send => (2, RemotePart { address: 0, key: 0 }),
            Request::Read(part) => (4, part),
            Request::Receive => {
                let (mut receive, mut bad) =
                    (ReceiveRequest { id, next: ptr::null_mut(), list, list_length }, ptr::null_mut());
                // SAFETY: the pair exists, and the driver copies the request during the call.
                let answer = unsafe {
                    let pair = (*self.identifier.raw).queue_pair;
                    ((*(*pair).context).post_recv)(pair, &raw mut receive, &raw mut bad)
                };
                return posted(answer);
            }
        };
        let mut send = SendRequest {
            id,
            next,
            list,
            list_length,
            opcode,
            flags: SIGNALED,
            immediate: 0,
            remote_address: remote.address,
            remote_key: remote.key,
            rest: [0; 19],
        };
        let mut bad = ptr::null_mut();
        // SAFETY: the pair exists, and the driver copies the request during the call.
        let answer = unsafe {
            let pair = (*self.identifier.raw).queue_pair;
            ((*(*pair).context).post_send)(pair, &raw mut send, &raw mut bad)
        };
        posted(answer)
    }

    /// Takes a request that has ended.
    ///
    /// # Errors
    /// The driver's.
    #[inline]
    pub fn take(&self) -> Result<Option<(Ended, RequestResult)>, Errno> {
        let mut completion = WorkCompletion::default();
        // SAFETY: the queue exists, and the completion is written to.
        let count = unsafe { ((*(*self.queue).context).poll_cq)(self.queue, 1, &raw mut completion) };
        match count {
            0 => Ok(None),
            1.. => {
                let ended = match completion.id {
                    CONTROL_SENT => Ended::ControlSent,
                    CONTROL_RECEIVED => Ended::ControlReceived,
                    ticket => Ended::Ticket(ticket as *mut c_void),
                };
                let result = match completion.status {
                    0 => Ok(completion.length_bytes),
                    status => Err(errno_of(status)),
                };
                Ok(Some((ended, result)))
            }
            _ => Err(Errno(libc::EIO)),
        }
    }

    /// Asks for a wake-up by the next completion, which may have arrived before.
    ///
    /// # Errors
    /// The driver's.
    pub fn arm(&self) -> Result<(), LibraryError> {
        // SAFETY: the queue exists.
        match unsafe { ((*(*self.queue).context).req_notify_cq)(self.queue, 0) } {
            0 => Ok(()),
            errno => Err(LibraryError::Call("ibv_req_notify_cq", Errno(errno.abs()))),
        }
    }

    /// Waits for a completion after `arm` or an event, for at most so long; `EINTR` after a signal.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&self, at_most: Duration) -> io::Result<()> {
        // SAFETY: the channel exists.
        let completions = unsafe { (*self.channel).fd };
        let mut entries = [readable(completions), readable(self.identifier.channel.fd())];
        wait(&mut entries, at_most)?;
        if entries[0].revents != 0 {
            let (mut queue, mut context) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: the channel exists, does not block, and both are written to; the wake-up is acknowledged once.
            unsafe {
                if (self.verbs.ibv_get_cq_event)(self.channel, &raw mut queue, &raw mut context) == 0 {
                    (self.verbs.ibv_ack_cq_events)(queue, 1);
                }
            }
        }
        Ok(())
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        self.disconnect();
        // SAFETY: what exists is destroyed once, each before what it is made of. Without the pair no request is left that
        // could use memory.
        unsafe {
            if self.has_pair {
                (self.identifier.channel.functions.rdma_destroy_qp)(self.identifier.raw);
            }
            self.forbid_access();
            if !self.control.is_null() {
                (self.verbs.ibv_dereg_mr)(self.control);
            }
            if !self.queue.is_null() {
                (self.verbs.ibv_destroy_cq)(self.queue);
            }
            if !self.channel.is_null() {
                (self.verbs.ibv_destroy_comp_channel)(self.channel);
            }
            if !self.domain.is_null() {
                (self.verbs.ibv_dealloc_pd)(self.domain);
            }
        }
    }
}

/// The answer of a driver to a request: 0, or an error number.
fn posted(answer: c_int) -> Result<(), Errno> {
    if answer == 0 { Ok(()) } else { Err(Errno(answer.abs())) }
}

/// The error number that comes closest to a status of a completion (`enum ibv_wc_status`).
fn errno_of(status: c_int) -> Errno {
    Errno(match status {
        // The message is longer than the receive, here or at the other end.
        1 | 9 => libc::EMSGSIZE,
        // It was flushed: the connection is over.
        5 => libc::ECONNRESET,
        // The other end has no such memory.
        10 => libc::EACCES,
        11 => libc::EREMOTEIO,
        // No answer, however often it was sent.
        12 => libc::ETIMEDOUT,
        // The other end has posted no receive.
        13 => libc::ENOBUFS,
        _ => libc::EIO,
    })
}
