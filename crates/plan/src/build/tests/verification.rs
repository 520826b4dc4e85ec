//! The methods of `verify`.
//!
//! Invariant: a checksum that is added is a method as well.

use fiord_verify::{Checksum, Method};

use super::jobs;

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
