//! How much a job covers and transfers.
//!
//! Invariant: an amount is bytes, a percentage or a number of zones, and stays so until the target is known.

use crate::table::set::{U64, options};
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// How much is transferred.
    pub struct Amount, scope Scope::Job;

    "Amount of I/O" {
        /// Size of the region of its files or device that each worker covers.
        ///
        /// This is also how much it transfers, unless `io_size` is given. Bytes, percent (`20%`) or zones (`10z`). By
        /// default, existing files are covered in full. With several files, the size is divided between them, unless
        /// `filesize` is given.
        ///
        /// Example: `size=10g`.
        size: Size;
        /// Amount that each worker transfers.
        ///
        /// If it is less than `size`, the job stops early; if more, it starts again from the beginning.
        ///
        /// Example: `size=1g` with `io_size=4g` covers the same GiB four times.
        io_size | io_limit: Size;
        /// Size of each file.
        ///
        /// Given a range, each file has a random size within it.
        ///
        /// Example: `nrfiles=100` with `filesize=4k-1m`.
        filesize: SizeRange, in 1..=U64;
        /// Write until the file system or device is full.
        fill_device | fill_fs: bool = 0, in 0..=1;
    }
}
