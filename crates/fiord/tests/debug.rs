//! `--debug`: which lines each channel prints, and where.
//!
//! Invariant: lines are compared by their form and number; what stands for addresses and threads is left out.

use crate::common::{Dir, finish, fiord, start};

const JOB: &str =
    "--output-format=terse --name=j --filename=f --bs=4k --size=16k --rw=randread --ioengine=psync";

/// The lines of a channel, without its name and the number of the thread.
fn lines(output: &str, channel: &str) -> Vec<String> {
    let of_channel = |line: &str| {
        let (word, rest) = line.split_once(' ')?;
        let (thread, text) = rest.trim_start().split_once(' ')?;
        let number_of_thread = thread.parse::<u32>().ok()?;
        (word == channel && number_of_thread > 0).then(|| text.trim_start().to_string())
    };
    output.lines().filter_map(of_channel).collect()
}

fn printed(line: &str) -> String {
    let dir = Dir::new();
    dir.write("f", vec![0; 16_384]);
    dir.run(line).assert_success().stdout.clone()
}

#[test]
fn each_io_is_printed_from_its_generation_to_its_completion() {
    for engine in ["psync", "io_uring --iodepth=2"] {
        let output = printed(&format!("{} --debug=io,random", JOB.replace("psync", engine)));
        assert!(output.starts_with("fio: set debug option io\nfio: set debug option random\n"), "{output}");
        let io = lines(&output, "io");
        for what in ["fill: io_u ", "prep: io_u ", "queue: io_u ", "complete: io_u "] {
            let mut offsets: Vec<&str> = io
                .iter()
                .filter(|line| line.starts_with(what) && line.ends_with(",len=0x1000,ddir=0,file=f"))
                .filter_map(|line| line.split_once("off=")?.1.split_once(',').map(|(offset, _)| offset))
                .collect();
            offsets.sort_unstable();
            assert_eq!(offsets, ["0x0", "0x1000", "0x2000", "0x3000"], "{what}\n{output}");
        }
        assert_eq!(lines(&output, "random").iter().filter(|line| line.starts_with("off rand ")).count(), 4);
        assert_eq!(lines(&output, "process"), [""; 0]);
    }
}

#[test]
fn the_states_of_a_job_and_its_files_are_printed() {
    let output = printed(&format!("{JOB} --debug=process,file,mem"));
    let states: Vec<String> = lines(&output, "process")
        .iter()
        .filter_map(|line| line.split_once(": runstate ").map(|(_, change)| change.to_string()))
        .collect();
    let expected = [
        "NOT_CREATED -> CREATED",
        "CREATED -> INITIALIZED",
        "INITIALIZED -> RUNNING",
        "RUNNING -> FINISHING",
        "FINISHING -> EXITED",
        "EXITED -> REAPED",
    ];
    assert_eq!(states, expected, "{output}");
    assert_eq!(lines(&output, "file"), ["fd open f", "fd close f"]);
    assert_eq!(lines(&output, "mem"), ["Alloc 4096 for buffers"]);
}

#[test]
fn options_are_printed_as_they_are_read() {
    let output = printed(&format!("{JOB} --thread --debug=parse --parse-only"));
    let parse = lines(&output, "parse");
    let expected = [
        "name, ptr=j",
        "filename, ptr=f",
        "bs, ptr=4k",
        "size, ptr=16k",
        "rw, ptr=randread",
        "ioengine, ptr=psync",
        "thread, ptr=(null)",
    ];
    assert_eq!(parse, expected.map(|option| format!("handle_option={option}")));
    // Those that jobs share are read once.
    let output =
        printed("--bs=4k --name=a --name=global --size=4k --name=b --name=c --debug=parse --parse-only");
    let options = ["bs, ptr=4k", "name, ptr=a", "size, ptr=4k", "name, ptr=b", "name, ptr=c"];
    assert_eq!(lines(&output, "parse"), options.map(|option| format!("handle_option={option}")));
}

/// The seeds of each job, by the lines of `--debug=random`.
fn seeds(options: &str) -> Vec<Vec<u64>> {
    let output = printed(&format!("{JOB} --debug=random {options}"));
    let mut jobs: Vec<Vec<u64>> = Vec::new();
    for line in lines(&output, "random") {
        if let Some(count) = line.strip_prefix("FIO_RAND_NR_OFFS=") {
            assert!(jobs.iter().all(|seeds| seeds.len().to_string() == count), "{output}");
            jobs.push(Vec::new());
        } else if let Some((index, seed)) =
            line.strip_prefix("rand_seeds[").and_then(|rest| rest.split_once("]="))
        {
            let seeds = jobs.last_mut().unwrap();
            assert_eq!(index, seeds.len().to_string(), "{output}");
            seeds.push(seed.parse().unwrap());
        }
    }
    jobs
}

/// As in fio, programs tell from them whether two runs draw the same.
#[test]
fn the_seeds_of_random_numbers_are_printed_for_each_job() {
    let usual = seeds("");
    assert!(usual.len() == 1 && usual[0].len() > 10, "{usual:?}");
    assert_eq!(usual[0].iter().collect::<std::collections::BTreeSet<_>>().len(), usual[0].len());
    assert_eq!(seeds(""), usual);
    assert_eq!(seeds("--ioengine=null --bs=512"), usual);
    for other in ["--randseed=7", "--randrepeat=0", "--allrandrepeat=0"] {
        assert!(seeds(other)[0].iter().zip(&usual[0]).all(|(seed, usual)| seed != usual), "{other}");
    }
    assert_eq!(seeds("--randseed=7 --randrepeat=0"), seeds("--randseed=7"));
    let two = seeds("--numjobs=2");
    assert_eq!((two.len(), &two[0]), (2, &usual[0]));
    assert_ne!(two[1], two[0]);
    assert_eq!(seeds("--numjobs=2 --debug=random,job:2"), two[1..]);
}

/// Before the options that the profile sets, as in fio.
#[test]
fn a_profile_is_printed_when_it_is_loaded() {
    let line = "--profile=tiobench --size=1 --debug=profile,parse --parse-only";
    let output = printed(line);
    assert_eq!(lines(&output, "profile"), ["loading profile 'tiobench'"], "{output}");
    assert!(output.find("loading profile") < output.find("handle_option=buffered"), "{output}");
    assert_eq!(lines(&printed(&format!("{JOB} --debug=profile")), "profile"), [""; 0]);
}

#[test]
fn one_job_may_be_chosen_and_the_channels_are_listed() {
    let all = printed(&format!("{JOB} --numjobs=2 --debug=random"));
    let one = printed(&format!("{JOB} --numjobs=2 --debug=random,job:2"));
    let drawn =
        |text: &str| lines(text, "random").iter().filter(|line| line.starts_with("off rand ")).count();
    assert_eq!((drawn(&all), drawn(&one)), (8, 4));
    assert!(one.contains("fio: set debug jobno 2\n"));
    for word in ["help", "?"] {
        let list = printed(&format!("{JOB} --debug={word}"));
        assert!(
            list.starts_with("fio: dumping debug options:process,file,io,mem,")
                && list.ends_with(",zbd,all\n"),
            "{list}"
        );
    }
    let dir = Dir::new();
    for (wrong, why) in
        [("nope", "not one of the allowed values"), ("job", "job:1"), ("job:0", "counted from 1")]
    {
        dir.run(&format!("{JOB} --debug={wrong}")).assert_status(1).assert_prints(&[why]);
    }
}

#[test]
fn the_lines_of_a_run_go_where_the_report_goes() {
    let dir = Dir::new();
    dir.write("f", vec![0; 16_384]);
    let ran = dir.run(&format!("{JOB} --debug=io --output=out"));
    assert_eq!(ran.assert_success().stdout, "fio: set debug option io\n");
    assert_eq!(lines(&dir.text("out"), "io").len(), 16);
    assert!(dir.text("out").contains(";j;"));
}

// divergence: `--debug`
/// Each of these channels prints a line that begins like this.
#[test]
fn every_channel_that_has_something_to_print_prints_it() {
    let write = JOB.replace("randread", "write");
    let logged = format!("{JOB} --write_lat_log=log --log_store_compressed=1");
    let steady = "--output-format=terse --name=j --ioengine=null --rw=read --bs=4k --size=1g --time_based \
                  --runtime=3 --ss=iops:99% --ss_dur=1 --ss_interval=500ms";
    let cases: [(&str, &str, &[&str]); 8] = [
        ("verify", &format!("{write} --verify=md5"), &["fill md5 io_u ", "md5 verify io_u "]),
        (
            "mutex",
            JOB,
            &["wait on startup_sem", "up startup_sem", "done waiting on startup_sem", "wait on td->sem"],
        ),
        ("mutex", JOB, &["done waiting on td->sem"]),
        ("time", &format!("{JOB} --clocksource=clock_gettime"), &["gettime: clocksource=2"]),
        ("rate", &format!("{JOB} --io_submit_mode=offload"), &["io_u 0x0 queued by ", "io_u 0x0 ret 0 by "]),
        ("compress", &logged, &["deflate input size=", "deflated to size="]),
        ("steadystate", steady, &["steadystate_check() thread: 0, groupid: 0, rate_msec: ", "sum_y: "]),
        ("process", JOB, &["will pthread_create"]),
    ];
    for (channel, line, starts) in cases {
        let printed = lines(&printed(&format!("{line} --debug={channel}")), channel);
        for start in starts {
            assert!(printed.iter().any(|line| line.starts_with(start)), "{channel}: {start}: {printed:?}");
        }
    }
    assert_eq!(lines(&printed(&format!("{JOB} --debug=net,helperthread,zbd,profile")), "net"), [""; 0]);
}

/// Where the disk below has counters.
#[test]
fn the_devices_below_are_printed_with_their_counters_before_and_after() {
    let output = printed(&format!("{JOB} --debug=diskutil"));
    let printed = lines(&output, "diskutil");
    if printed.is_empty() {
        fiord_testing::skip!("no disk below the temporary directory has counters");
    }
    let added: Vec<&str> =
        printed.iter().filter_map(|line| line.strip_prefix("add ")?.strip_suffix(" to list")).collect();
    for name in added {
        let start = format!("/sys/class/block/{name}/stat: read_ios=");
        assert_eq!(printed.iter().filter(|line| line.starts_with(&start)).count(), 2, "{output}");
    }
}

/// A binary trace of a read, a write, a flush and a discard of the device 7:0, as blktrace records them when they are
/// queued.
#[test]
fn the_entries_of_a_binary_trace_are_printed_as_they_are_read() {
    let event = |at_us: u64, sector: u64, bytes: u32, category: u32| -> Vec<u8> {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let head = words(&[0x6561_7407, 1]);
        let tail = words(&[bytes, category << 16 | 1, 77, 7 << 20, 0, 0]);
        [head, (at_us * 1000).to_le_bytes().to_vec(), sector.to_le_bytes().to_vec(), tail].concat()
    };
    let (read, write, flush, discard) = (1, 2, 4, 1 << 13);
    let dir = Dir::new();
    dir.write("f", vec![0; 16_384]);
    let events = [
        event(0, 8, 4096, read),
        event(150, 16, 4096, write),
        event(250, 0, 0, flush),
        event(280, 0, 4096, discard),
    ];
    dir.write("trace", events.concat());
    let replay = "--output-format=terse --name=j --ioengine=psync --read_iolog=trace --replay_redirect=f";
    let output = dir.run(&format!("{replay} --debug=blktrace")).assert_success().stdout.clone();
    let expected = [
        "add devices f",
        "store ddir=0, off=4096, len=4096, delay=0",
        "store ddir=1, off=8192, len=4096, delay=150",
        "store flush delay=100",
        "store discard, off=0, len=4096, delay=30",
    ];
    assert_eq!(lines(&output, "blktrace"), expected, "{output}");
}

/// A control group that permits no thread but the first.
#[test]
fn lines_that_cannot_be_printed_are_an_error() {
    let group = std::path::PathBuf::from(format!("/sys/fs/cgroup/pids/fiord-debug-{}", std::process::id()));
    if std::fs::create_dir(&group).is_err() {
        fiord_testing::skip!("no control group for threads can be made");
    }
    let dir = Dir::new();
    let command = fiord(dir.path(), &format!("{JOB} --debug=io"));
    let mut limited = std::process::Command::new("sh");
    let script = "echo 1 >$GROUP/pids.max && echo $$ >$GROUP/cgroup.procs && exec \"$@\"";
    limited.args(["-c", script, "sh"]).arg(command.get_program()).args(command.get_args());
    limited.current_dir(dir.path()).env("GROUP", &group);
    let ran = finish(start(limited));
    let removed = std::fs::remove_dir(&group);
    ran.assert_status(1).assert_prints(&["--debug: the thread that prints its lines cannot be started"]);
    removed.unwrap();
}
