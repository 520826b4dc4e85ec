//! `fiord check etcd` where its figures are not those of a disk: the verdict is withheld, with the reason.
//!
//! Invariant: each place has a reason of its own, which is in the findings; the exit status is that of `CANNOT TELL`.

use fiord_testing::need;

use crate::common::{Dir, LoopDevice, Mount, Ran, direct_works_in, finish, fiord, start};
use crate::findings::made::{hidden_overlay, hogs, overlay, pinned, processor_turn, shared_cpu, writer};
use crate::findings::{codes, counted};

/// The exit status of a verdict that is withheld.
const CANNOT_TELL: i32 = 6;

/// Asserts that the verdict is withheld and that a finding of this code says why.
#[track_caller]
fn assert_withheld(ran: &Ran, code: &str) {
    let document = ran.json();
    assert!(codes(&document).contains(&(code.to_string(), "void".to_string())), "{code}: {document}");
    assert_eq!(document["verdict"], "CANNOT TELL", "{document}");
    assert!(document["conclusion"].as_str().unwrap().starts_with("CANNOT TELL, because "), "{document}");
    ran.assert_status(CANNOT_TELL);
}

/// The check of a directory below `dir`.
fn check(dir: &Dir, target: &str, time: &str) -> Ran {
    dir.run(&format!("check etcd --trust=on --no-history --json --time {time} {target}"))
}

#[test]
fn in_memory() {
    let dir = Dir::new();
    let _tmpfs = need!(Mount::tmpfs(&dir, "size=100m"));
    assert_withheld(&check(&dir, "tmpfs", "300ms"), "in-memory");
}

#[test]
fn on_an_overlay_in_memory_or_of_which_nothing_is_seen_or_that_ignores_flushes() {
    let dir = Dir::new();
    let tmpfs = need!(Mount::tmpfs(&dir, "size=100m"));
    let _in_memory = need!(overlay(&dir, &tmpfs.path, "in-memory", ""));
    assert_withheld(&check(&dir, "in-memory", "300ms"), "in-memory");
    let _hidden = need!(hidden_overlay(&dir));
    assert_withheld(&check(&dir, "hidden", "300ms"), "storage-hidden");
    let _volatile = need!(overlay(&dir, &dir.join("of-volatile"), "volatile", ",volatile"));
    assert_withheld(&check(&dir, "volatile", "300ms"), "sync-ignored");
    // An overlay on a disk that is seen is no reason.
    let _seen = need!(overlay(&dir, &dir.join("of-seen"), "seen", ""));
    let seen = codes(&check(&dir, "seen", "300ms").json());
    let reasons = ["in-memory", "storage-hidden", "sync-ignored"];
    assert!(seen.iter().all(|(code, _)| !reasons.contains(&code.as_str())), "{seen:?}");
}

#[test]
fn on_a_loop_device() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 128 << 20));
    let _ext4 = need!(Mount::ext4(&dir, &device));
    assert_withheld(&check(&dir, "ext4", "300ms"), "too-small");
}

#[test]
fn beside_two_writers() {
    let dir = Dir::new();
    need!(direct_works_in(dir.path()));
    need!(counted(&dir));
    let path = |name: &str| dir.join(name).to_string_lossy().into_owned();
    let _writers = [writer(&path("one")), writer(&path("other"))];
    assert_withheld(&check(&dir, ".", "2s"), "disk-shared");
}

/// The check and what disturbs it share one processor, so that nobody else's is needed.
#[test]
fn beside_programs_that_keep_the_processor_busy() {
    let dir = Dir::new();
    let _turn = processor_turn();
    let cpu = need!(shared_cpu());
    let _hogs = hogs(&cpu, 2);
    let check = fiord(dir.path(), "check etcd --trust=on --no-history --json --time 5s .");
    assert_withheld(&finish(start(pinned(&cpu, &check))), "cpu-contended");
}
