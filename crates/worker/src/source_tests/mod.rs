//! Test sources of operations on both loops: one replays a list, one re-reads what it wrote.
//!
//! Invariant: timing comes from a clock that only the test advances; data goes through real engines and a real file,
//! under an allocator that records every request made in a loop.

mod blocks;
mod faulty;
mod harness;
mod known_latencies;
mod own_work;
mod replay;
mod reread;
mod response;
mod rules;
mod trace;
mod unqueued;
mod wrappers;
