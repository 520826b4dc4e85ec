//! The methods of `verify`.
//!
//! Invariant: a checksum that is added is a method as well.

use fiord_verify::{Checksum, Method};

use super::{jobs, messages};

#[test]
fn every_checksum_is_a_method_of_its_name() {
    for checksum in Checksum::ALL {
        let name = checksum.name();
        let jobs =
            jobs(&format!("--name=a --ioengine=psync --filename=f --size=1m --rw=write --verify={name}"));
        let method = jobs[0].verification.as_ref().map(|verification| verification.format.method);
        assert_eq!(method, Some(Method::Checksum(checksum)), "{name}");
    }
}

#[test]
fn a_block_that_no_header_can_describe_is_refused() {
    let line = "--name=a --ioengine=psync --filename=f --size=1t --rw=write --verify=crc32c --bs=";
    assert!(jobs(&format!("{line}4294967295")).iter().all(|job| job.verification.is_some()));
    let message = messages(&format!("{line}4294967296"), &[]);
    assert!(message.contains("a block of 4294967296 bytes cannot be verified"), "{message}");
    assert_eq!(jobs("--name=a --ioengine=psync --filename=f --size=1t --rw=write --bs=8g").len(), 1);
}

#[test]
fn a_state_is_saved_by_jobs_that_write_and_loaded_where_one_was_saved() {
    let states = |more: &str| {
        let line = format!("--name=a/b --ioengine=psync --filename=f --size=1m --verify=crc32c {more}");
        let verification = jobs(&line)[0].verification.clone().unwrap();
        [verification.saved_state, verification.loaded_state]
            .map(|path| path.map(|path| path.display().to_string()))
    };
    let local = || Some("local-a.b-0-verify.state".to_string());
    assert_eq!(states("--rw=write"), [local(), None]);
    assert_eq!(states("--rw=write --verify_state_save=0"), [None, None]);
    assert_eq!(states("--rw=read --verify_state_load=1"), [None, local()]);
    assert_eq!(states("--rw=write --verify_only=1"), [None, None]);
}
