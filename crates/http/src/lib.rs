//! HTTP/1.1 as a store of objects: the requests that write, read and delete them over WebDAV, S3 and Swift, and the
//! answers.
//!
//! Invariant: no socket is opened here. Requests and answers are bytes in and out, and once a client is made nothing here
//! allocates as long as paths are not longer than before.

mod answer;
mod client;
mod signature;
mod target;
mod time;

pub use answer::{Answer, AnswerError, Body, Chunks};
pub use client::{Access, Client, Method, Part, S3};
pub use signature::{EncryptionKey, Keys, Signer};
pub use target::{Endpoint, EndpointError, Object};
pub use time::Timestamp;
