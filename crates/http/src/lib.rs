//! HTTP/1.1 as a store of objects: the requests that write, read and delete them over WebDAV, S3 and Swift, and the
//! heads and bodies of the responses.
//!
//! Invariant: no socket is opened here. Requests and responses are bytes in and out, and once a client is made nothing
//! here allocates as long as paths are not longer than before.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod client;
mod response;
mod signature;
mod target;
mod time;

pub use client::{Access, Client, Method, Part, S3};
pub use response::{Body, Chunks, ResponseError, ResponseHead};
pub use signature::{EncryptionKey, Keys, Signer};
pub use target::{Endpoint, EndpointError, Object};
pub use time::Timestamp;
