//! Runs on an idle machine: common jobs have hardly any findings, and a study has the same verdict each time.
//!
//! Invariant: a machine that is not idle, before or during the runs, is a skip; and so is every run of all tests, because
//! others run at the same time.

use std::fs;

use fiord_testing::{need, skip};

use crate::common::{Dir, direct_works_in};
use crate::findings::made::busy_during;
use crate::findings::run;

/// Lines of text that a clean run may end with.
const LINES_MAX: usize = 3;

/// More of the processors' time in use before a run, and more bytes to and from disks, are no idle machine.
const BUSY_MAX: f64 = 0.1;
const SECTORS_MAX: u64 = 512;

/// What people run, shortened: a file of 16 MiB, direct unless it says otherwise.
const JOBS: [&str; 20] = [
    "--rw=randread --bs=4k --ioengine=libaio --iodepth=32",
    "--rw=randread --bs=4k --ioengine=io_uring --iodepth=16",
    "--rw=randread --bs=4k --ioengine=psync",
    "--rw=randread --bs=8k --ioengine=libaio --iodepth=8 --numjobs=2 --group_reporting",
    "--rw=randread --bs=16k --ioengine=io_uring --iodepth=4 --norandommap",
    "--rw=read --bs=1m --ioengine=libaio --iodepth=4",
    "--rw=read --bs=128k --ioengine=io_uring --iodepth=8",
    "--rw=read --bs=64k --ioengine=psync",
    "--rw=write --bs=1m --ioengine=libaio --iodepth=4 --end_fsync=1",
    "--rw=write --bs=128k --ioengine=io_uring --iodepth=8 --end_fsync=1",
    "--rw=write --bs=64k --ioengine=psync --end_fsync=1",
    "--rw=randwrite --bs=4k --ioengine=libaio --iodepth=32 --end_fsync=1",
    "--rw=randwrite --bs=4k --ioengine=io_uring --iodepth=16 --end_fsync=1",
    "--rw=randwrite --bs=8k --ioengine=psync --end_fsync=1",
    "--rw=randrw --rwmixread=70 --bs=4k --ioengine=libaio --iodepth=16 --end_fsync=1",
    "--rw=randrw --rwmixread=90 --bs=8k --ioengine=io_uring --iodepth=8 --end_fsync=1",
    "--rw=rw --bs=64k --ioengine=libaio --iodepth=4 --end_fsync=1",
    "--rw=randwrite --bs=4k --ioengine=psync --fdatasync=1",
    "--rw=write --bs=2300 --ioengine=psync --fdatasync=1 --direct=0",
    "--rw=randread --bs=4k --ioengine=libaio --iodepth=4 --randrepeat=0 --lat_percentiles=1",
];

/// Sectors that whole machine's disks have read and written.
fn sectors() -> u64 {
    let text = fs::read_to_string("/proc/diskstats").unwrap_or_default();
    let of = |line: &str| -> u64 {
        let fields: Vec<u64> =
            line.split_whitespace().skip(3).filter_map(|field| field.parse().ok()).collect();
        fields.get(2).unwrap_or(&0) + fields.get(6).unwrap_or(&0)
    };
    text.lines().map(of).sum()
}

/// Whether nothing else runs, as far as a quarter of a second shows.
fn idle() -> Result<(), String> {
    let before = sectors();
    let ((), busy) = busy_during(|| std::thread::sleep(std::time::Duration::from_millis(250)));
    let moved = sectors() - before;
    if busy > BUSY_MAX || moved > SECTORS_MAX {
        return Err(format!("the machine is not idle: {:.0} % busy, {moved} sectors", 100.0 * busy));
    }
    Ok(())
}

/// Both tests of this file, one after the other: `FIORD_IDLE=1 cargo test -p fiord --test it findings::clean -- --test-threads=1`
#[test]
fn common_jobs_on_an_idle_machine_are_clean() {
    need!(fiord_testing::idle_machine());
    let dir = Dir::new();
    need!(direct_works_in(dir.path()));
    for job in JOBS {
        need!(idle());
        let line = format!("--name=a --filename=f --direct=1 {job} --size=16m --time_based --runtime=500ms");
        let document = run(&dir, &line);
        // What the hypervisor takes away is true, and nothing that runs here causes it.
        let found = document["findings"].as_array().into_iter().flatten();
        let found: Vec<_> = found.filter(|finding| finding["code"] != "stolen-cpu").collect();
        let lines: usize = found.iter().map(|finding| if finding["remedy"] == "" { 1 } else { 2 }).sum();
        let is_clean = found.iter().all(|finding| finding["severity"] == "note") && lines <= LINES_MAX;
        if !is_clean && let Err(why) = idle() {
            skip!("{why}");
        }
        assert!(is_clean, "{job}: {}", document["findings"]);
    }
}

/// How often the study is run.
const STUDIES: usize = 10;

/// What one study concluded.
#[derive(Clone, Debug)]
struct Concluded {
    verdict: String,
    conclusion: String,
}

impl Concluded {
    /// The rank of the verdict; `None` if it is withheld.
    fn rank(&self) -> Option<usize> {
        ["PASS", "MARGINAL", "FAIL"].iter().position(|known| *known == self.verdict)
    }

    /// Whether it says itself that another check may have the other verdict: that is said of PASS and MARGINAL alone.
    fn says_so(&self) -> bool {
        self.conclusion.contains("Another check may see more or less headroom")
    }
}

/// Two studies of the same disk with different verdicts, neither of which said that the noise hides the limit.
fn flip(studies: &[Concluded]) -> Option<(Concluded, Concluded)> {
    let decided = || studies.iter().filter_map(|study| Some((study.rank()?, study)));
    let pairs = decided().flat_map(|one| decided().map(move |other| (one, other)));
    let is_flip = |((rank, one), (other_rank, other)): &((usize, &Concluded), (usize, &Concluded))| {
        let is_said = *other_rank < 2 && (one.says_so() || other.says_so());
        rank < other_rank && !is_said
    };
    pairs.filter(is_flip).map(|((_, one), (_, other))| (one.clone(), other.clone())).next()
}

#[test]
fn a_flip_of_verdicts_that_nobody_announced_is_recognised() {
    let study = |verdict: &str, says_so: bool| Concluded {
        verdict: verdict.to_string(),
        conclusion: if says_so { "Another check may see more or less headroom: …" } else { "" }.to_string(),
    };
    let is_flip = |studies: &[Concluded]| flip(studies).is_some();
    let (pass, fail) = (study("PASS", false), study("FAIL", false));
    let (marginal, unsure) = (study("MARGINAL", false), study("MARGINAL", true));
    let withheld = study("CANNOT TELL", false);
    assert!(!is_flip(&[pass.clone(), withheld.clone(), pass.clone()]));
    assert!(!is_flip(&[pass.clone(), unsure.clone()]) && is_flip(&[marginal.clone(), pass.clone()]));
    assert!(is_flip(&[fail.clone(), withheld, pass]) && is_flip(&[unsure, fail.clone()]));
    assert!(!is_flip(&[fail.clone(), fail]) && !is_flip(&[marginal]));
}

#[test]
fn the_same_study_ten_times_in_a_row_never_changes_its_verdict_unannounced() {
    need!(fiord_testing::idle_machine());
    let dir = Dir::new();
    need!(direct_works_in(dir.path()));
    need!(idle());
    let mut studies = Vec::new();
    for _ in 0..STUDIES {
        let ran = dir.run("check etcd --trust=on --no-history --json --time 9s .");
        let document = ran.json();
        let text = |key: &str| document[key].as_str().unwrap_or_default().to_string();
        let concluded = Concluded { verdict: text("verdict"), conclusion: text("conclusion") };
        let status = match concluded.rank() {
            Some(0 | 1) => 0,
            Some(_) => 4,
            None => 6,
        };
        assert_eq!(concluded.rank().is_none(), concluded.verdict == "CANNOT TELL", "{document}");
        ran.assert_status(status);
        studies.push(concluded);
    }
    let flip = flip(&studies);
    assert!(flip.is_none(), "{flip:#?}\nof {studies:#?}");
}
