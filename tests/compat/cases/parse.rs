//! The two grammars: what is accepted, and what `--showcmd` prints for it.
//!
//! Invariant: no case here starts I/O.

use crate::corpus;
use fiord_compat::compare::{equal, figure, stdout, verdict};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, case, versions};

/// Command lines; each is tried with `--parse-only`, and those that fio accepts with `--showcmd` too.
const COMMAND_LINES: &[(&str, &str)] = &[
    ("two-dashes-equals", "--name=a --rw=randread --bs=4k --size=1m"),
    ("two-dashes-space", "--name a --rw randread --bs 4k --size 1m"),
    ("one-dash-equals", "-name=a -rw=randread -bs=4k -size=1m"),
    ("one-dash-space", "-name a -rw randread -bs 4k -size 1m"),
    ("bare-flags", "--name=a --rw=read --size=1m --thread --group_reporting --time_based --runtime=1"),
    ("globals-before-name", "--rw=randread --bs=8k --size=1m --name=a --name=b --bs=16k"),
    ("several-names", "--name=a --rw=read --size=1m --name=b --rw=write --size=2m --stonewall"),
    ("abbreviation", "--name=a --rw=read --size=1m --group_rep"),
    ("ambiguous-abbreviation", "--name=a --rw=read --size=1m --io=4k"),
    ("alias-readwrite", "--name=a --readwrite=randrw --size=1m"),
    ("alias-blocksize", "--name=a --rw=read --blocksize=16k --size=1m"),
    ("per-direction-bs", "--name=a --rw=randrw --bs=4k,8k --size=1m"),
    ("per-direction-bs-gap", "--name=a --rw=randrw --bs=,8k --size=1m"),
    ("three-directions-bs", "--name=a --rw=randrw --bs=4k,8k,16k --size=1m"),
    ("bsrange", "--name=a --rw=randread --bsrange=1k-4k --size=1m"),
    ("bsrange-per-direction", "--name=a --rw=randrw --bsrange=1k-4k,2k-8k --size=1m"),
    ("bssplit", "--name=a --rw=randrw --bssplit=4k/50:8k/30:16k/20 --size=1m"),
    ("bssplit-per-direction", "--name=a --rw=randrw --bssplit=4k/10:64k/90,8k/50:16k/50 --size=1m"),
    ("bssplit-open-share", "--name=a --rw=randrw --bssplit=4k/50:8k/:16k/ --size=1m"),
    ("rate-per-direction", "--name=a --rw=randrw --rate=1m,2m --size=1m"),
    ("rate-gap", "--name=a --rw=randrw --rate=,500k --size=1m"),
    ("units", "--name=a --rw=read --bs=4kb --size=1mb --offset=4KiB --io_size=1MB"),
    ("time-units", "--name=a --rw=read --size=1m --runtime=2s --ramp_time=100ms --startdelay=1"),
    ("percent-size", "--name=a --rw=read --filesize=1m --size=50%"),
    ("filename-list", "--name=a --rw=read --size=1m --filename=/dev/sda:/dev/sdb --bs=512"),
    ("filename-escaped", "--name=a --rw=read --size=1m --filename=dev\\:null"),
    ("rw-with-count", "--name=a --rw=randread:8 --size=1m"),
    ("rw-with-offset", "--name=a --rw=read:16k --size=1m"),
    ("hex-number", "--name=a --rw=read --size=0x100000 --bs=0x1000"),
    ("upper-case-unit", "--name=a --rw=read --size=1M --bs=4K"),
    ("trailing-space-in-value", "--name=a --rw=read '--size=1m ' --bs=4k"),
    ("engine-option", "--name=a --ioengine=libaio --rw=read --size=1m --userspace_reap"),
    ("engine-option-before-engine", "--name=a --hipri --ioengine=pvsync2 --rw=read --size=1m"),
    (
        "io_uring-options",
        "--name=a --ioengine=io_uring --fixedbufs --registerfiles --sqthread_poll --rw=read --size=1m",
    ),
    ("same-option-twice", "--name=a --rw=read --bs=4k --bs=8k --size=1m"),
    ("name-with-space", "'--name=a b' --rw=read --size=1m"),
    (
        "long-option-list",
        "--name=a --rw=randrw --rwmixread=70 --norandommap --randrepeat=0 --iodepth=16 --direct=1 \
      --numjobs=4 --size=16m --bs=4k --group_reporting --time_based --runtime=5 --ramp_time=1 --fsync=32",
    ),
    ("unknown-option", "--name=a --rw=read --size=1m --frobnicate=1"),
    ("unknown-bare-option", "--name=a --rw=read --size=1m --frobnicate"),
    ("bad-rw", "--name=a --rw=sideways --size=1m"),
    ("bad-number", "--name=a --rw=read --size=lots"),
    ("out-of-range", "--name=a --rw=read --size=1m --rwmixread=101"),
    ("bad-bool", "--name=a --rw=read --size=1m --invalidate=2"),
    ("bad-engine", "--name=a --ioengine=warp --rw=read --size=1m"),
    ("missing-value", "--name=a --rw=read --size=1m --bs"),
    ("empty-value", "--name=a --rw=read --size="),
    ("bs-zero", "--name=a --rw=read --size=1m --bs=0"),
    ("iodepth-zero", "--name=a --rw=read --size=1m --iodepth=0"),
    ("no-name", "--rw=read --size=1m"),
    ("engine-option-of-another", "--name=a --ioengine=null --rw=read --size=1m --sqthread_poll"),
    // divergence: `runtime=,3`
    (
        "first-value-left-out",
        "--name=a --rw=read --size=1m --runtime=,3 --numjobs=,2 --direct=,1 --thread=,0",
    ),
    ("first-value-left-out-second-wrong", "--name=a --rw=read --size=1m --direct=,2"),
    ("only-a-comma", "--name=a --rw=read --size=1m --numjobs=,"),
    // divergence: `runtime=30*1`
    ("duration-and-more", "--name=a --rw=read --size=1m --runtime=30*1 --ramp_time=2/s --startdelay=1-2-3"),
    // divergence: `filesize=16-8k/8M-512M`
    ("range-of-three-ends", "--name=a --rw=read --filesize=16-8k/8M-512M"),
    ("range-of-three-blocks", "--name=a --rw=read --size=1m --bsrange=1k-2k-4k"),
    // divergence: `threads=1` and other options of profiles
    ("options-of-profiles", "--name=a --rw=read --size=1m --threads=2 --load=3 --prep --block=8k --dir=d"),
    ("options-of-profiles-wrong", "--name=a --rw=read --size=1m --threads=x"),
    ("prioclass-list", "--name=a --rw=read --size=1m --prioclass=1-1"),
    ("prioclass-word", "--name=a --rw=read --size=1m --prioclass=best"),
    ("pattern-without-gaps", "--name=a --rw=read --size=1m '--buffer_pattern=\"abcd\"-120xdeadface'"),
    ("verify_offset-in-the-header", "--name=a --rw=read --size=1m --verify_offset=4"),
    ("engine-aio", "--name=a --rw=read --size=1m --ioengine=aio_x --userspace_reap"),
    ("engine-linuxaio", "--name=a --rw=read --size=1m --ioengine=linuxaio --userspace_reap"),
    ("log-prefix-behind-a-blank", "--name=a --rw=read --size=1m --write_lat_log pref --write_bw_log pref"),
    ("log-prefix-missing", "--name=a --rw=read --size=1m --write_lat_log"),
    ("flag-and-a-blank", "--name=a --rw=read --size=1m --thread 1"),
    ("warnings-fatal-clean", "--warnings-fatal --name=a --rw=read --size=1m"),
    ("max-jobs", "--max-jobs=2 --name=a --rw=read --size=1m --numjobs=3"),
    ("alloc-size", "--alloc-size=32768 --name=a --rw=read --size=1m"),
    ("eta-values", "--eta=never --eta-newline=1 --name=a --rw=read --size=1m"),
    ("output-format-bad", "--output-format=xml --name=a --rw=read --size=1m"),
    ("terse-version-bad", "--terse-version=9 --name=a --rw=read --size=1m"),
];

/// Job files. The name of the file is `job.fio`; it may include `inc.fio`.
const JOB_FILES: &[(&str, &str)] = &[
    ("plain", "[a]\nrw=read\nsize=1m\n"),
    ("global", "[global]\nbs=4k\nsize=1m\n[a]\nrw=read\n[b]\nrw=write\n"),
    ("two-globals", "[global]\nbs=4k\nsize=1m\n[a]\nrw=read\n[global]\nbs=8k\n[b]\nrw=write\n"),
    ("only-global", "[global]\nbs=4k\nsize=1m\n"),
    ("empty-section", "[global]\nrw=read\nsize=1m\n[a]\n[b]\n"),
    ("empty-file", ""),
    ("comments", "; one\n# two\n[a] \n  # three\nrw=read\n;x=y\nsize=1m\n"),
    // divergence: `;` or `#` after an option
    ("comment-after-value", "[a]\nrw=read ; why not\nsize=1m # or so\n"),
    ("bare-keys", "[a]\nrw=read\nsize=1m\nthread\ngroup_reporting\nstonewall\nnorandommap\n"),
    // divergence: `rw= read`
    ("spaces-around-equals", "[a]\nrw = read\nsize = 1m\n  bs =4k\n"),
    ("tabs", "[a]\n\trw=read\n\tsize\t=\t1m\n"),
    ("crlf", "[global]\r\nsize=1m\r\n[a]\r\nrw=read\r\nbs=4k\r\n"),
    ("no-last-newline", "[a]\nrw=read\nsize=1m"),
    ("space-in-section", "[a job, really]\nrw=read\nsize=1m\n"),
    ("duplicate-sections", "[a]\nrw=read\nsize=1m\n[a]\nrw=write\nsize=1m\n"),
    ("quoted-value", "[a]\nrw=read\nsize=1m\nname=\"quoted name\"\n"),
    ("percent-percent", "[a]\nrw=read\nfilesize=1m\nsize=100%%\n"),
    // divergence: sums with a keyword in numbers
    ("arithmetic-on-a-keyword", "[a]\nrw=read\nsize=256*$pagesize\n"),
    ("arithmetic-in-parentheses-on-a-keyword", "[a]\nrw=read\nsize=(4+$pagesize*2)\n"),
    ("keyword-pagesize", "[a]\nrw=read\nbs=$pagesize\nsize=1m\n"),
    ("keyword-ncpus", "[a]\nrw=read\nnumjobs=$ncpus\nsize=1m\n"),
    ("keyword-memory", "[a]\nrw=read\nsize=$mb_memory\n"),
    ("jobname-in-filename", "[a]\nrw=read\nsize=1m\nfilename=x-$jobname-$jobnum\n"),
    ("variable", "[a]\nrw=read\nsize=${COMPAT_SIZE}\n"),
    ("variable-with-suffix", "[a]\nrw=read\nsize=${COMPAT_COUNT}m\n"),
    ("unset-variable", "[a]\nrw=read\nsize=${COMPAT_UNSET}\n"),
    ("include", "[global]\ninclude inc.fio\n[a]\nrw=read\n"),
    ("include-in-section", "[a]\nrw=read\ninclude inc.fio\n"),
    ("alias", "[a]\nreadwrite=randrw\nblocksize=8k\nsize=1m\n"),
    ("upper-case-key", "[a]\nRW=read\nsize=1m\n"),
    ("upper-case-value", "[a]\nrw=READ\nsize=1m\n"),
    ("unknown-key", "[a]\nrw=read\nsize=1m\nfrobnicate=1\n"),
    ("unknown-key-in-global", "[global]\nfrobnicate=1\n[a]\nrw=read\nsize=1m\n"),
    ("bad-value", "[a]\nrw=read\nsize=1m\nbs=four\n"),
    ("bad-value-in-second-job", "[a]\nrw=read\nsize=1m\n[b]\nrw=up\nsize=1m\n"),
    ("no-section", "rw=read\nsize=1m\n"),
    // divergence: `[a]x`, `[abc`
    ("open-bracket", "[a\nrw=read\nsize=1m\n"),
    ("missing-value", "[a]\nrw=\nsize=1m\n"),
    ("wait_for", "[a]\nrw=read\nsize=1m\n[b]\nwait_for=a\nrw=read\nsize=1m\n"),
    ("wait_for-nobody", "[b]\nwait_for=zz\nrw=read\nsize=1m\n"),
    ("description", "[a]\ndescription=Reads, and reads; all day long\nrw=read\nsize=1m\n"),
    ("ini-colon", "[a]\nrw: read\nsize=1m\n"),
    ("number-with-spaces", "[a]\nrw=read\nsize=1 m\n"),
    ("quoted-filename", "[a]\nrw=read\nsize=1m\nfilename=\"f g\"\n"),
];

/// Input that fio accepts and then ignores, or fails on later; fiord refuses it with a message that contains the word.
const STRICTER: &[(&str, &str, &str)] = &[
    // divergence: `bssplit=4k/70:8k/60`
    ("bssplit-over-100", "--name=a --rw=read --bssplit=4k/60:8k/60 --size=1m", "120"),
    ("numjobs-negative", "--name=a --rw=read --size=1m --numjobs=-1", "numjobs"),
    ("eta-unknown", "--eta=sometimes --name=a --rw=read --size=1m", "sometimes"),
    // divergence: `include` of a missing file
    ("include-missing", "job.fio", "gone.fio"),
];

fn stricter() -> impl Iterator<Item = Case> {
    STRICTER.iter().map(|&(name, args, word)| {
        let case = case(format!("parse/stricter/{name}"), format!("--parse-only {args}"));
        let case = case.text("job.fio", "[global]\ninclude gone.fio\n[a]\nrw=read\nsize=1m\n");
        case.check(move |pair: &Pair| {
            equal("exit status of fio", 0, pair.fio.status)?;
            let refused = pair.fiord.status != 0 && pair.fiord.stderr.contains(word);
            if refused { Ok(()) } else { Err(format!("not refused with a message that names {word:?}")) }
        })
    })
}

/// Ways to name job files on the command line.
fn file_choices() -> Vec<Case> {
    let two = "[global]\nsize=1m\n[a]\nrw=read\n[b]\nrw=write\n[ab]\nrw=randread\n";
    let other = "[c]\nrw=read\nsize=1m\n";
    let line = |name: &str, args: &str| {
        let args = format!("--showcmd {args}");
        case(format!("parse/files/{name}"), args)
            .text("two.fio", two)
            .text("other.fio", other)
            .check(verdict)
            .check(stdout)
    };
    vec![
        line("one", "two.fio"),
        line("several", "two.fio other.fio"),
        line("section", "--section=b two.fio"),
        line("section-twice", "--section=a --section=b two.fio"),
        line("section-is-not-a-prefix", "--section=a two.fio"),
        line("section-missing", "--section=zz two.fio"),
        line("options-before-file", "--bs=8k other.fio"),
        line("job-then-file", "--name=x --rw=read --size=1m other.fio"),
        line("missing-file", "gone.fio"),
        line("stdin", "-").stdin(other),
        line("stdin-empty", "-"),
    ]
}

/// Arithmetic without a keyword is in fio's manual, but Debian's fio is built without it: the expected results are
/// listed here.
// divergence: `(4*8)`, without a keyword
fn arithmetic() -> Vec<Case> {
    [("parentheses", "(4*64k)"), ("sum", "(128k+2*64k)"), ("nested", "((1+3)*65536)"), ("quotient", "(1m/4)")]
        .map(|(name, size)| {
            let args =
                format!("--output-format=json --name=a --ioengine=null --rw=read --bs=4k --size={size}");
            case(format!("parse/arithmetic/{name}"), args).check(|pair: &Pair| {
                let lacks = versions::ON_THE_PAGE.holds(pair.oracle);
                equal("fio refuses it", lacks, pair.fio.status != 0)?;
                equal(
                    "bytes",
                    262_144,
                    figure(pair.fiord.jobs()?.first().ok_or("no job")?, "read", "io_bytes"),
                )
            })
        })
        .into()
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, line) in COMMAND_LINES {
        cases.push(case(format!("parse/line/{name}"), format!("--parse-only {line}")).check(verdict));
        let shown = case(format!("parse/showcmd/{name}"), format!("--showcmd {line}"));
        cases.push(shown.check(verdict).check(stdout_if_accepted));
    }
    for (name, text) in JOB_FILES {
        for mode in ["--parse-only", "--showcmd"] {
            let kind = mode.trim_start_matches('-');
            let case = case(format!("parse/file-{kind}/{name}"), format!("{mode} job.fio"));
            let case = case.text("job.fio", *text).text("inc.fio", "size=1m\nbs=8k\n");
            let case = case.env("COMPAT_SIZE", "1m").env("COMPAT_COUNT", "2");
            cases.push(case.check(verdict).check(stdout_if_accepted));
        }
    }
    cases.extend(file_choices());
    cases.extend(arithmetic());
    cases.extend(stricter());
    cases.extend(corpus::cases());
    cases
}

/// Messages of refusals may differ.
fn stdout_if_accepted(pair: &Pair) -> Verdict {
    if pair.fio.status == 0 { stdout(pair) } else { Ok(()) }
}
