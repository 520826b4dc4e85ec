//! Jobs that cannot run: both programs fail, and fiord gives the reason.
//!
//! Invariant: every case expects a failure of fio too; cases in which fio continues belong elsewhere.

use fiord_compat::compare::{json_shape, refused};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, case};

/// The arguments, and a word that fiord's message must contain.
const REFUSED: &[(&str, &str, &str)] = &[
    ("missing-directory", "--name=a --rw=read --size=64k --directory=gone", "gone"),
    ("no-size", "--name=a --rw=read", "size"),
    (
        "missing-file-not-to-be-made",
        "--name=a --rw=read --size=64k --allow_file_create=0",
        "allow_file_create",
    ),
    ("read-only-program", "--readonly --name=a --rw=write --size=64k", "read"),
    ("block-larger-than-file", "--name=a --rw=read --size=4k --bs=64k", "65536"),
    ("directory-as-file", "--name=a --rw=write --size=64k --filename=.", "."),
    ("rwmix-over-100", "--name=a --rw=randrw --size=64k --rwmixread=150", "150"),
    ("unknown-engine", "--name=a --rw=read --size=64k --ioengine=warp", "engine warp not loadable"),
    (
        "lat_percentiles-within-a-group",
        "--group_reporting --ioengine=null --size=64k --name=a --name=b --lat_percentiles=1",
        "lat_percentiles",
    ),
    ("zonesize-alone", "--name=a --rw=read --size=1m --zonesize=64k", "zonesize"),
    ("unknown-iomem", "--name=a --rw=read --size=64k --iomem=glue", "glue"),
    ("cpus-not-there", "--name=a --rw=read --size=64k --cpus_allowed=4000", "4000"),
    ("job-file-is-a-directory", "sub", "sub"),
];

fn names(word: &'static str) -> impl Fn(&Pair) -> Verdict {
    move |pair| {
        let output = [pair.fiord.stderr.as_str(), pair.fiord.stdout.as_str()].concat();
        if output.contains(word) { Ok(()) } else { Err(format!("the message does not contain {word:?}")) }
    }
}

fn leaves_nothing(pair: &Pair) -> Verdict {
    fiord_compat::compare::equal("files created by a refused job", &[][..], &pair.fiord.files()?[..])
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = REFUSED
        .iter()
        .map(|&(name, args, word)| {
            let case = case(format!("errors/{name}"), args).check(refused).check(names(word));
            if name == "job-file-is-a-directory" { case.text("sub/x", "") } else { case }
        })
        .collect();
    cases.push(
        case("errors/second-job-is-wrong", "--name=a --rw=write --size=64k --name=b --rw=up --size=64k")
            .check(refused)
            .check(leaves_nothing),
    );
    cases.push(
        case("errors/direct-with-odd-block", "--name=a --rw=read --size=64k --bs=700 --direct=1")
            .bytes("a.0.0", 65_536)
            .check(refused),
    );
    for (name, job) in [
        ("direct-with-odd-block", "--filename=f --bs=700 --direct=1 --size=64k"),
        ("trims-of-no-file", "--filename=/dev/null --rw=trim --size=64k"),
        ("no-size", "--filename=new"),
        ("directory", "--filename=. --size=64k"),
    ] {
        let line =
            format!("--output-format=json --disk_util=0 --name=b --ioengine=null --size=64k --name=a {job}");
        let case = case(format!("errors/keys-of-{name}"), line).bytes("f", 65_536);
        cases.push(case.check(refused).check(json_shape));
    }
    cases
}
