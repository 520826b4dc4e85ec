//! What a controller and the agents on its hosts say to each other: frames, messages, and both ends as state machines.
//!
//! Invariant: pure. Bytes, messages and the time come in as values, bytes and actions go out; no bytes of the other end make
//! this panic, or take more memory than the limits that are stated here.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod agent;
pub mod controller;
pub mod frame;
pub mod message;
mod pace;
pub mod section;

pub use agent::{Agent, AgentAction, AgentEvent};
pub use controller::{Controller, ControllerAction, ControllerSettings};
pub use frame::{FrameError, Inbox, PREFACE};
pub use message::{
    Cleaned, Collected, End, Hello, Kept, LeftReport, Log, LogPiece, Logs, Message, Prepare, Progress, Sent,
    StudyCommand, StudyReport, Told,
};
pub use pace::Rates;
pub use section::Sections;
