//! The structures of libibverbs and librdmacm, and the functions of `libibverbs.so.1`.
//!
//! Invariant: every field that is used is where the public headers (version 44) have it, which assertions below check for
//! machines of 64 bits.
//!
//! Requests are posted and completions polled by functions that the headers define inline: they call the device's driver
//! through pointers in its context.

use std::ffi::{c_int, c_uint, c_void};
#[cfg(target_pointer_width = "64")]
use std::mem::offset_of;

use super::functions;

functions! {
    /// Functions of libibverbs. Some exist in two versions, of which the older has other structures.
    struct Verbs from "libibverbs.so.1" of package "libibverbs1 ibverbs-providers";
    fn ibv_alloc_pd(*mut Context) -> *mut c_void, version "IBVERBS_1.1";
    fn ibv_dealloc_pd(*mut c_void) -> c_int, version "IBVERBS_1.1";
    fn ibv_create_comp_channel(*mut Context) -> *mut CompletionChannel;
    fn ibv_destroy_comp_channel(*mut CompletionChannel) -> c_int;
    fn ibv_create_cq(*mut Context, c_int, *mut c_void, *mut CompletionChannel, c_int) -> *mut CompletionQueue, version "IBVERBS_1.1";
    fn ibv_destroy_cq(*mut CompletionQueue) -> c_int, version "IBVERBS_1.1";
    fn ibv_get_cq_event(*mut CompletionChannel, *mut *mut CompletionQueue, *mut *mut c_void) -> c_int, version "IBVERBS_1.1";
    fn ibv_ack_cq_events(*mut CompletionQueue, c_uint), version "IBVERBS_1.1";
    fn ibv_reg_mr(*mut c_void, *mut c_void, usize, c_int) -> *mut MemoryRegion, version "IBVERBS_1.1";
    fn ibv_dereg_mr(*mut MemoryRegion) -> c_int, version "IBVERBS_1.1";
    fn ibv_modify_qp(*mut QueuePair, *mut QueuePairAttributes, c_int) -> c_int, version "IBVERBS_1.1";
}

/// `struct ibv_context`, up to the last of its functions that is used.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Context {
    device: *mut c_void,
    before_poll: [*const c_void; 11],
    pub(crate) poll_cq: unsafe extern "C" fn(*mut CompletionQueue, c_int, *mut WorkCompletion) -> c_int,
    pub(crate) req_notify_cq: unsafe extern "C" fn(*mut CompletionQueue, c_int) -> c_int,
    between: [*const c_void; 12],
    pub(crate) post_send:
        unsafe extern "C" fn(*mut QueuePair, *mut SendRequest, *mut *mut SendRequest) -> c_int,
    pub(crate) post_recv:
        unsafe extern "C" fn(*mut QueuePair, *mut ReceiveRequest, *mut *mut ReceiveRequest) -> c_int,
}

/// `struct ibv_qp`, its beginning.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct QueuePair {
    pub(crate) context: *mut Context,
}

/// `struct ibv_cq`, its beginning.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CompletionQueue {
    pub(crate) context: *mut Context,
}

/// `struct ibv_comp_channel`, its beginning.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CompletionChannel {
    context: *mut Context,
    pub(crate) fd: c_int,
}

/// `struct ibv_mr`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct MemoryRegion {
    context: *mut Context,
    domain: *mut c_void,
    start: *mut c_void,
    length: usize,
    handle: u32,
    pub(crate) local_key: u32,
    pub(crate) remote_key: u32,
}

/// `struct ibv_sge`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ScatterEntry {
    pub(crate) address: u64,
    pub(crate) length_bytes: u32,
    pub(crate) local_key: u32,
}

/// `struct ibv_send_wr`. The rest is of operations that are not used.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SendRequest {
    pub(crate) id: u64,
    pub(crate) next: *mut SendRequest,
    pub(crate) list: *mut ScatterEntry,
    pub(crate) list_length: c_int,
    pub(crate) opcode: c_int,
    pub(crate) flags: c_uint,
    pub(crate) immediate: u32,
    pub(crate) remote_address: u64,
    pub(crate) remote_key: u32,
    pub(crate) rest: [u32; 19],
}

/// `struct ibv_recv_wr`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ReceiveRequest {
    pub(crate) id: u64,
    pub(crate) next: *mut ReceiveRequest,
    pub(crate) list: *mut ScatterEntry,
    pub(crate) list_length: c_int,
}

/// `struct ibv_wc`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct WorkCompletion {
    pub(crate) id: u64,
    pub(crate) status: c_int,
    opcode: c_int,
    vendor_error: u32,
    pub(crate) length_bytes: u32,
    rest: [u32; 6],
}

/// `struct ibv_qp_init_attr`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct QueuePairSetup {
    pub(crate) context: *mut c_void,
    pub(crate) send_queue: *mut CompletionQueue,
    pub(crate) receive_queue: *mut CompletionQueue,
    pub(crate) shared_receive_queue: *mut c_void,
    pub(crate) sends_max: u32,
    pub(crate) receives_max: u32,
    pub(crate) send_entries_max: u32,
    pub(crate) receive_entries_max: u32,
    pub(crate) inline_bytes_max: u32,
    pub(crate) kind: c_int,
    pub(crate) signals_all: c_int,
}

/// `struct ibv_qp_attr`, of which one field is used.
#[derive(Debug)]
#[repr(C, align(8))]
pub(crate) struct QueuePairAttributes {
    pub(crate) before: [u8; 128],
    pub(crate) receiver_not_ready_timer: u8,
    pub(crate) after: [u8; 15],
}

/// `struct rdma_event_channel`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct EventChannel {
    pub(crate) fd: c_int,
}

/// `struct rdma_cm_id`, its beginning.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct RawIdentifier {
    pub(crate) context: *mut Context,
    channel: *mut EventChannel,
    user_context: *mut c_void,
    pub(crate) queue_pair: *mut QueuePair,
}

/// `struct rdma_conn_param`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ConnectionParameters {
    pub(crate) private_data: *const c_void,
    pub(crate) private_data_bytes: u8,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) flow_control: u8,
    pub(crate) retry_count: u8,
    pub(crate) receiver_not_ready_retry_count: u8,
    pub(crate) shared_receive_queue: u8,
    pub(crate) queue_pair_number: u32,
}

/// `struct rdma_cm_event`, up to its parameters.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct RawEvent {
    pub(crate) identifier: *mut RawIdentifier,
    pub(crate) listener: *mut RawIdentifier,
    pub(crate) kind: c_int,
    pub(crate) status: c_int,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(offset_of!(Context, poll_cq) == 96 && offset_of!(Context, req_notify_cq) == 104);
    assert!(offset_of!(Context, post_send) == 208 && offset_of!(Context, post_recv) == 216);
    assert!(offset_of!(CompletionChannel, fd) == 8);
    assert!(offset_of!(MemoryRegion, local_key) == 36 && offset_of!(MemoryRegion, remote_key) == 40);
    assert!(size_of::<ScatterEntry>() == 16);
    assert!(offset_of!(SendRequest, opcode) == 28 && offset_of!(SendRequest, flags) == 32);
    assert!(offset_of!(SendRequest, remote_address) == 40 && offset_of!(SendRequest, remote_key) == 48);
    assert!(size_of::<SendRequest>() == 128 && size_of::<ReceiveRequest>() == 32);
    assert!(offset_of!(WorkCompletion, status) == 8 && offset_of!(WorkCompletion, length_bytes) == 20);
    assert!(size_of::<WorkCompletion>() == 48);
    assert!(offset_of!(QueuePairSetup, sends_max) == 32 && offset_of!(QueuePairSetup, kind) == 52);
    assert!(offset_of!(QueuePairSetup, signals_all) == 56 && size_of::<QueuePairSetup>() == 64);
    assert!(offset_of!(QueuePairAttributes, receiver_not_ready_timer) == 128);
    assert!(size_of::<QueuePairAttributes>() == 144);
    assert!(offset_of!(RawIdentifier, queue_pair) == 24);
    assert!(offset_of!(ConnectionParameters, receiver_not_ready_retry_count) == 13);
    assert!(offset_of!(ConnectionParameters, queue_pair_number) == 16);
    assert!(offset_of!(RawEvent, kind) == 16 && offset_of!(RawEvent, status) == 20);
};
