//! Whether direct I/O is found to be direct or not, on every file system that can be mounted here.
//!
//! Invariant: a file system that cannot be made here is skipped, and named.

use std::path::Path;

use fiord_testing::need;
use serde_json::Value;

use crate::common::fuse::{Fuse, Reply};
use crate::common::{Dir, Mount, Ran, helper};
use crate::findings::made::{Made, overlay};
use crate::findings::{codes, has, run};

/// What is found of direct I/O.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Direct {
    Honoured,
    Not,
    /// Since Linux 6.15: writes of files with checksums.
    NotSince615,
    /// The kernel says that the file has none.
    Refused,
}

/// A type of file system, its mount options, the attribute of the file, and what is found of writes, and of reads of a file
/// that can be compressed.
const TABLE: [(&str, &str, &str, Direct, Direct); 7] = [
    ("ext4", "defaults", "", Direct::Honoured, Direct::Honoured),
    ("ext4", "data=journal", "", Direct::Refused, Direct::Refused),
    ("xfs", "defaults", "", Direct::Honoured, Direct::Honoured),
    ("btrfs", "defaults", "", Direct::NotSince615, Direct::Honoured),
    ("btrfs", "defaults", "+C", Direct::Honoured, Direct::Honoured),
    ("btrfs", "nodatasum", "", Direct::Honoured, Direct::Honoured),
    ("btrfs", "compress-force=zstd", "", Direct::NotSince615, Direct::Not),
];

const FINDING: &str = "direct-not-honoured";

/// A run of direct I/O to a file. Pages that are written at once are there at some of the looks alone.
fn direct(dir: &Dir, file: &Path, rw: &str) -> Ran {
    let runtime = if rw == "write" { "2400ms" } else { "1200ms" };
    let line = "--no-history --output-format=json --name=a --bs=64k --size=8m --direct=1 --ioengine=psync --time_based";
    dir.run(&format!("{line} --runtime={runtime} --rw={rw} --filename={}", file.display()))
}

/// The document of direct reads of a file of zeros on btrfs, mounted with these options.
pub fn reads_of_zeros(dir: &Dir, options: &str) -> Result<Value, String> {
    let place = Dir::under(dir.path())?;
    let made = Made::new(&place, "btrfs", options)?;
    let file = made.path().join("f");
    write_zeros(&file);
    Ok(direct(dir, &file, "read").assert_success().json())
}

fn write_zeros(file: &Path) {
    let file = std::fs::File::create(file).unwrap();
    std::io::Write::write_all(&mut &file, &vec![0; 8 << 20]).unwrap();
    file.sync_all().unwrap();
}

/// Whether this kernel's version is at least this one.
fn is_since(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).filter_map(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (major, minor)
}

#[test]
fn direct_io_is_found_to_be_direct_or_not_on_every_file_system() {
    let mut tried = 0;
    let mut missing = String::new();
    for (kind, options, attribute, writes, reads) in TABLE {
        let dir = Dir::new();
        let made = match Made::new(&dir, kind, options) {
            Ok(made) => made,
            Err(why) => {
                missing += &format!("{kind}: {why}; ");
                continue;
            }
        };
        for (rw, expected) in [("write", writes), ("read", reads)] {
            let file = made.path().join(rw);
            std::fs::File::create(&file).unwrap();
            if !attribute.is_empty() {
                helper("chattr", &[attribute, &file.to_string_lossy()]).unwrap();
            }
            if rw == "read" {
                write_zeros(&file);
            }
            let ran = direct(&dir, &file, rw);
            if expected == Direct::Refused {
                assert!(ran.assert_status(1).stderr.contains("direct"), "{ran:?}");
                continue;
            }
            let document = ran.assert_success().json();
            let is_found = expected == Direct::Not || (expected == Direct::NotSince615 && is_since(6, 15));
            let row = format!("{kind} {options} {attribute} {rw}");
            assert_eq!(has(&document, FINDING), is_found, "{row}: {}", document["findings"]);
        }
        tried += 1;
    }
    need!(if tried > 0 { Ok(()) } else { Err(missing) });
}

/// What is cached of a file of an overlay is cached of the file below, which only the job itself sees.
#[test]
fn an_overlay_is_judged_by_what_is_cached_below_it() {
    for (options, is_found) in [("compress-force=zstd", true), ("defaults", false)] {
        let dir = Dir::new();
        let made = need!(Made::new(&dir, "btrfs", options));
        let over = need!(overlay(&dir, made.path(), "over", ""));
        let file = over.path.join("f");
        write_zeros(&file);
        let document = direct(&dir, &file, "read").assert_success().json();
        assert_eq!(has(&document, FINDING), is_found, "{options}: {}", document["findings"]);
        let bound =
            need!(Mount::new(&dir, "again", &["--bind", &made.path().join("upper").to_string_lossy()]));
        let document = direct(&dir, &bound.path.join("f"), "read").assert_success().json();
        assert_eq!(has(&document, FINDING), is_found, "{options}, bound: {}", document["findings"]);
        let unseen = dir.run(&format!(
            "--no-history --output-format=json --trust=off --name=a --bs=64k --direct=1 --rw=read --filename={}",
            file.display()
        ));
        assert!(!has(&unseen.assert_success().json(), FINDING));
    }
}

/// Memory has no direct I/O, and a finding of its own.
#[test]
fn a_file_in_memory_is_not_judged_by_its_pages() {
    let dir = Dir::new();
    let tmpfs = need!(Mount::tmpfs(&dir, "size=64m"));
    let document = direct(&dir, &tmpfs.path.join("f"), "write").assert_success().json();
    assert!(has(&document, "in-memory") && !has(&document, FINDING), "{}", document["findings"]);
}

/// The server of a file system has the file in memory, and nothing of it comes from a disk: neither a run nor a study
/// says anything about a disk. One that takes as long as a network may be one.
#[test]
fn a_server_that_has_a_cache_is_found_and_nothing_is_concluded() {
    let served = |wait: Reply| {
        let dir = Dir::new();
        let fuse = Fuse::mount(&dir, "fuse", 256 << 20, true, move |_| wait)?;
        let line = "--name=a --filename=fuse/data --rw=randread --bs=4k --direct=1 --ioengine=psync --time_based \
                    --runtime=1s";
        let document = run(&dir, line);
        let quick = dir.run("quick --no-history --trust=on --json --time 900ms fuse/data").json();
        drop(fuse);
        Ok::<_, String>((document, quick))
    };
    let is_contended = |document: &Value| codes(document).iter().any(|(code, _)| code == "cpu-contended");
    let (cached, quick) = need!(served(Reply::Whole));
    // The study's runs are too short to say that others keep the processors busy; a run beside it says so.
    let is_found = has(&cached, FINDING) && has(&quick, FINDING);
    if !is_found && (is_contended(&cached) || is_contended(&need!(served(Reply::Whole)).0)) {
        fiord_testing::skip!("this machine is too busy for I/O at the speed of memory");
    }
    assert!(has(&cached, FINDING), "{cached}");
    assert!(has(&quick, FINDING), "{quick}");
    assert!(quick["conclusion"].as_str().unwrap().starts_with("CANNOT TELL"), "{quick}");
    let (slow, _) = need!(served(Reply::After(std::time::Duration::from_millis(2))));
    assert!(!has(&slow, FINDING), "{slow}");
}
