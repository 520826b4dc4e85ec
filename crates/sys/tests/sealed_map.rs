//! A sealed memory map does not change, whatever is allocated, freed, ended and joined.
//!
//! Invariant: the only test of its process, because the map is that of all threads.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::fs;
use std::sync::mpsc::channel;

use fiord_sys::reserve::Reserved;
use fiord_sys::sealed_map::{is_sealed, seal, unseal};
use fiord_sys::spawn::spawn;

#[global_allocator]
static ALLOCATOR: Reserved = Reserved;

const STACK_BYTES: usize = 256 << 10;

/// The mapped ranges, as the kernel lists them.
fn map() -> String {
    fs::read_to_string("/proc/self/maps").unwrap()
}

#[test]
fn a_sealed_map_does_not_change() {
    if std::env::var_os("ASAN_OPTIONS").is_some() {
        fiord_testing::skip!("AddressSanitizer maps memory of its own");
    }
    // Larger than what an allocator keeps.
    let mut grows = vec![7_u8; 1 << 20];
    let freed = vec![7_u8; 1 << 20];
    let (release, released) = channel::<()>();
    let (release_other, other_released) = channel::<()>();
    let returns = spawn("returns", STACK_BYTES, move || {
        // Every worker has allocated before.
        drop(vec![7_u8; 100]);
        let _ = released.recv();
        vec![7_u8; 3 << 20]
    });
    let dropped = spawn("dropped", STACK_BYTES, move || {
        let _ = other_released.recv();
    });
    let (returns, dropped) = (returns.unwrap(), dropped.unwrap());

    seal();
    let sealed = map();
    drop(freed);
    grows.resize(2 << 20, 7);
    let zeroed = vec![0_u8; 5 << 20];
    let mut shrinks = vec![7_u8; 4 << 20];
    shrinks.truncate(100);
    shrinks.shrink_to_fit();
    drop((release, release_other));
    let returned = returns.join().unwrap();
    drop(dropped);
    // What a report asks of the C library.
    assert!(fs::read_dir("/proc/self").unwrap().count() > 0 && fs::canonicalize("/proc/self").is_ok());
    fiord_sys::clock::utc_offset_s();
    assert!(is_sealed());
    assert_eq!(map(), sealed);

    unseal();
    assert_ne!(map(), sealed, "what was freed while it was sealed is given back");
    grows.resize(6 << 20, 7);
    for bytes in [&grows, &shrinks, &returned] {
        assert!(bytes.iter().all(|byte| *byte == 7));
    }
    assert!(zeroed.iter().all(|byte| *byte == 0));
    seal();
    let again = map();
    drop((grows, shrinks, returned, zeroed));
    assert_eq!(map(), again);
}
