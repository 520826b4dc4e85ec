//! Carries out plans and studies: one of them in, a stream of events and reports out.
//!
//! Invariant: prints nothing, and knows neither terminals, nor command lines, nor exit statuses. Whoever shows a run is told
//! of it (`event`), and decides nothing.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, reason = "files go through the target opener"))]

pub mod claims;
pub mod device_table;
mod ending;
mod error;
pub mod event;
pub mod run;
mod stop;
pub mod study;

pub use ending::Ending;
pub use error::SessionError;
pub use stop::StopHandle;
