//! The protocol of network block devices (NBD): addresses, the fixed newstyle handshake, requests and simple replies.
//!
//! Invariant: no socket is opened here. The handshake talks over any stream, and messages are bytes in and out.
//!
//! Replies are the simple ones, never structured: a structured read reply may leave holes out, so that fewer bytes would
//! cross the network than are reported as read.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod message;
mod negotiation;
mod uri;

pub use message::{Command, REPLY_BYTES, REQUEST_BYTES, Reply, ReplyError, Request, disconnect};
pub use negotiation::{Export, Negotiation, NegotiationError};
pub use uri::{Address, Host, UriError};
