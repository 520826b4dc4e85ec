//! `fiord hosts` and `fiord agent`, without a network. Runs on hosts are in `tests/fleet`.

use crate::common::Dir;
use crate::common::study::assert_documented;

#[test]
fn hosts_are_shown_as_json_and_as_a_table() {
    let dir = Dir::new();
    let ran = dir.run("hosts a,b --via={agent} --json");
    ran.assert_success();
    let document = ran.json();
    assert_documented(&document, &["hosts"]);
    assert_eq!(document["hosts"].as_array().map(Vec::len), Some(2));
    assert_eq!(dir.run("hosts a --via=telnet").status, Some(1));
}
