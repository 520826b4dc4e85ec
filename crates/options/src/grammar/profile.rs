//! fio's built-in profiles: the jobs that `--profile=NAME` stands for, as if they had been typed.
//!
//! Invariant: a profile's options are read here and nowhere else; what follows from them are settings of other options,
//! which replace those typed before, as in fio.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::environment::KeywordValues;
use crate::problem::{Problem, ProblemKind};
use crate::section::{Section, Setting};
use crate::shown::shown;
use crate::suggest;
use crate::table::Spec;
use crate::table::job::{
    Access, Amount, Blocks, Buffers, Files, General, Legacy, Measure, Pace, Process, Queue, Time,
};
use crate::value::{Flag, Reading, Seconds, Value};

/// Reads I/Os per second and bytes written per second that ACT has at a load of 1.
const ACT_READS_PER_S: u64 = 2000;
const ACT_WRITTEN_BYTES_PER_S: u64 = 12 * 128 * 1024;

/// The files of tiobench.
const TIOBENCH_FILES: &str = ".fio.tio.1:.fio.tio.2:.fio.tio.3:.fio.tio.4";

/// A profile: its name, its options, and its jobs.
struct Profile {
    name: &'static str,
    options: &'static [&'static Spec],
    jobs: fn(&Typed<'_>) -> Result<Jobs, Problem>,
}

/// Every profile.
const PROFILES: [Profile; 2] = [
    Profile {
        name: "tiobench",
        options: &[Legacy::block, Legacy::numruns, Legacy::dir, Legacy::threads, Amount::size],
        jobs: tiobench,
    },
    Profile {
        name: "act",
        options: &[
            Legacy::device_names,
            Legacy::load,
            Legacy::test_duration,
            Legacy::threads_per_queue,
            Legacy::read_req_num_512_blocks,
            Legacy::large_block_op_kbytes,
            Legacy::prep,
        ],
        jobs: act,
    },
];

/// The settings of a profile's jobs.
struct Jobs {
    /// Of all of them.
    global: Vec<Setting>,
    sections: Vec<Section>,
}

/// What was typed for a profile.
struct Typed<'a> {
    profile: &'a Setting,
    options: &'a [Setting],
    keywords: &'a KeywordValues,
}

/// Takes the profile and its options out of `globals`, and appends the settings that all of its jobs have. Returns its
/// setting and its jobs, which inherit `globals`; `None` if no profile was typed.
///
/// # Errors
/// What is wrong with the profile or its options.
pub(super) fn take(
    globals: &mut Vec<Setting>,
    keywords: &KeywordValues,
) -> Result<Option<(Setting, Vec<Section>)>, Problem> {
    let Some(at) = globals.iter().rposition(|setting| setting.spec == General::profile) else {
        return Ok(None);
    };
    let setting = globals.remove(at);
    globals.retain(|other| other.spec != General::profile);
    let Some(profile) = PROFILES.iter().find(|profile| setting.text() == Some(profile.name)) else {
        return Err(unknown(&setting));
    };
    let (options, rest) = globals.drain(..).partition(|other| other.spec.is_one_of(profile.options));
    *globals = rest;
    let typed = Typed { profile: &setting, options: &options, keywords };
    let jobs = (profile.jobs)(&typed)?;
    globals.extend(jobs.global);
    Ok(Some((setting, jobs.sections)))
}

fn unknown(setting: &Setting) -> Problem {
    let name = setting.value.as_deref().map(shown).unwrap_or_default();
    let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    let meant = suggest::nearest(&name, known.iter().copied());
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant:?}?"));
    Problem::error(
        ProblemKind::UnknownName,
        setting.value_place.clone(),
        setting.spec,
        format!("there is no profile {name:?}{meant}"),
        format!("profiles: {}", known.join(", ")),
    )
}

impl Typed<'_> {
    fn last(&self, option: &Spec) -> Option<&Setting> {
        self.options.iter().rfind(|setting| setting.spec == option)
    }

    /// The value of an option, if it was typed.
    fn value<T: Value>(&self, option: &Spec) -> Result<Option<T>, Problem> {
        let Some(setting) = self.last(option) else { return Ok(None) };
        let parsed = T::parse(setting.text().unwrap_or_default(), &mut Reading::default());
        parsed.map(Some).map_err(|why| self.wrong(setting, why, ""))
    }

    /// A number that is not 0.
    fn number(&self, option: &Spec, default: u64) -> Result<u64, Problem> {
        match (self.value::<u32>(option)?, self.last(option)) {
            (Some(0), Some(setting)) => Err(self.wrong(setting, "0 is too small".to_string(), "at least 1")),
            (value, _) => Ok(value.map_or(default, u64::from)),
        }
    }

    fn text(&self, option: &Spec) -> Option<OsString> {
        self.last(option)?.value.clone()
    }

    fn wrong(&self, setting: &Setting, why: String, remedy: &str) -> Problem {
        Problem::error(ProblemKind::InvalidValue, setting.value_place.clone(), setting.spec, why, remedy)
    }

    /// A setting of the profile, which is where the profile was asked for.
    fn set(&self, option: &'static Spec, value: impl Into<OsString>) -> Setting {
        let (place, value_place) = (self.profile.place.clone(), self.profile.value_place.clone());
        Setting { place, value_place, ..Setting::new(option, value) }
    }

    /// A flag without a value.
    fn flag(&self, option: &'static Spec) -> Setting {
        Setting { value: None, ..self.set(option, "") }
    }

    fn job(&self, name: OsString, settings: Vec<Setting>) -> Section {
        let own = [vec![self.set(General::name, name.clone())], settings].concat();
        Section { own, place: self.profile.place.clone(), ..Section::new(name) }
    }
}

/// Four files that threads write and read, first in order and then at random.
fn tiobench(typed: &Typed<'_>) -> Result<Jobs, Problem> {
    let size = match (typed.value::<u32>(Amount::size), typed.last(Amount::size)) {
        (Ok(Some(mib @ 1..)), _) => format!("{}", u64::from(mib) << 20),
        (_, Some(setting)) => {
            return Err(typed.wrong(
                setting,
                "the size of tiobench is a number of MiB".into(),
                "for example size=1024",
            ));
        }
        // fio's default: 4 KiB for each MiB of memory.
        (_, None) => format!("{}", typed.keywords.memory_mib << 12),
    };
    let set = |option, value: u64| typed.set(option, value.to_string());
    let global = vec![
        typed.set(Access::buffered, "0"),
        typed.set(Amount::size, size),
        set(Blocks::bs, typed.number(Legacy::block, 4096)?),
        set(General::loops, typed.number(Legacy::numruns, 1)?),
        typed.set(Files::directory, typed.text(Legacy::dir).unwrap_or_else(|| "./".into())),
        set(General::numjobs, typed.number(Legacy::threads, 1)?),
        typed.set(Time::runtime, "600"),
        typed.flag(Measure::group_reporting),
        typed.flag(Process::thread),
        typed.set(Files::overwrite, "1"),
        typed.set(Files::filename, TIOBENCH_FILES),
        typed.set(Queue::ioengine, "sync"),
    ];
    let job = |name: &str, rw: &str, is_first: bool, writes: bool| {
        let waits = (!is_first).then(|| typed.flag(Process::stonewall));
        let syncs = writes.then(|| typed.set(Files::end_fsync, "1"));
        let settings = waits.into_iter().chain([typed.set(Access::rw, rw)]).chain(syncs);
        typed.job(name.into(), settings.collect())
    };
    Ok(Jobs {
        global,
        sections: vec![
            job("seqwrite", "write", true, true),
            job("randwrite", "randwrite", false, true),
            job("seqread", "read", false, false),
            job("randread", "randread", false, false),
        ],
    })
}

/// Reads of small blocks and writes of large ones, at the rates of Aerospike's certification tool.
fn act(typed: &Typed<'_>) -> Result<Jobs, Problem> {
    let Some(names) = typed.text(Legacy::device_names) else {
        return Err(Problem::error(
            ProblemKind::ValueCount,
            typed.profile.place.clone(),
            typed.profile.spec,
            "the profile act has no device to work on",
            "--device-names=/dev/a,/dev/b; their contents are overwritten",
        ));
    };
    let devices = names.as_bytes().split(|byte| *byte == b',').filter(|name| !name.is_empty());
    let devices: Vec<OsString> = devices.map(|name| OsStr::from_bytes(name).to_os_string()).collect();
    let is_bare = typed.last(Legacy::prep).is_some_and(|setting| setting.value.is_none());
    let is_preparation = is_bare || typed.value::<Flag>(Legacy::prep)?.is_some_and(|flag| flag.0);
    let mut global = vec![
        typed.set(Access::direct, "1"),
        typed.set(Queue::ioengine, "sync"),
        typed.set(Access::random_generator, "lfsr"),
        typed.set(Measure::group_reporting, "1"),
        typed.flag(Process::thread),
    ];
    let of_device: Vec<Vec<Section>> = match is_preparation {
        true => devices.iter().map(|device| act_preparation(typed, device)).collect(),
        false => {
            let duration =
                typed.value::<Seconds>(Legacy::test_duration)?.map_or(86_400_000_000, |time| time.us);
            global.push(typed.set(Time::runtime, format!("{duration}us")));
            global.push(typed.set(Time::time_based, "1"));
            devices.iter().map(|device| act_load(typed, device)).collect::<Result<_, Problem>>()?
        }
    };
    Ok(Jobs { global, sections: of_device.concat() })
}

/// The name of a job on a device.
fn act_name(what: &str, device: &OsString) -> OsString {
    let mut name = OsString::from(what);
    name.push(device);
    name
}

/// Zeroes a device, then writes to all of it at random.
fn act_preparation(typed: &Typed<'_>, device: &OsString) -> Vec<Section> {
    let zeroes = vec![
        typed.set(Files::filename, device.clone()),
        typed.set(Blocks::bs, "1048576"),
        typed.flag(Buffers::zero_buffers),
        typed.set(Access::rw, "write"),
    ];
    let salt = vec![
        typed.flag(Process::stonewall),
        typed.set(Files::filename, device.clone()),
        typed.set(Blocks::bs, "4096"),
        typed.set(Queue::ioengine, "libaio"),
        typed.set(Queue::iodepth, "64"),
        typed.set(Access::rw, "randwrite"),
    ];
    vec![
        typed.job(act_name("act-prep-zeroes-", device), zeroes),
        typed.job(act_name("act-prep-salt-", device), salt),
    ]
}

/// The readers and the writer of a device.
fn act_load(typed: &Typed<'_>, device: &OsString) -> Result<Vec<Section>, Problem> {
    let load = typed.number(Legacy::load, 1)?;
    let threads = typed.number(Legacy::threads_per_queue, 8)?;
    let read_bytes = 512 * typed.number(Legacy::read_req_num_512_blocks, 3)?;
    let large_bytes = typed.number(Legacy::large_block_op_kbytes, 128 * 1024)?;
    let set = |option, value: u64| typed.set(option, value.to_string());
    let writes_per_s = load * ACT_WRITTEN_BYTES_PER_S / large_bytes;
    if let (0, Some(setting)) = (writes_per_s, typed.last(Legacy::large_block_op_kbytes)) {
        let why = format!("less than one write of {large_bytes} bytes a second at load={load}");
        return Err(typed.wrong(setting, why, "in bytes, as in fio: 131072 is 128 KiB"));
    }
    let reads = vec![
        typed.set(Files::filename, device.clone()),
        typed.set(Access::rw, "randread"),
        set(General::numjobs, threads),
        set(Pace::rate_iops, (load * ACT_READS_PER_S / threads).max(1)),
        set(Blocks::bs, read_bytes),
    ];
    let writes = vec![
        typed.set(Files::filename, device.clone()),
        typed.set(Access::rw, "randwrite"),
        set(Pace::rate_iops, writes_per_s),
        set(Blocks::bs, large_bytes),
    ];
    Ok(vec![
        typed.job(act_name("act-read-", device), reads),
        typed.job(act_name("act-write-", device), writes),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{KEYWORDS, read_with, sections, texts};

    /// The jobs of a command line, each as `name [inherited] own`; or what is wrong with it.
    fn jobs(line: &str) -> Vec<String> {
        sections(&line.split(' ').collect::<Vec<&str>>(), &[])
    }

    // divergence: `--profile=tiobench`, the size by default
    #[test]
    fn tiobench_is_four_jobs_on_four_files() {
        let all = "buffered=0 size=1048576 bs=8192 loops=3 directory=d numjobs=4 runtime=600 group_reporting thread \
                   overwrite=1 filename=.fio.tio.1:.fio.tio.2:.fio.tio.3:.fio.tio.4 ioengine=sync";
        let found = jobs("--profile=tiobench --size=1 --block=8k --numruns=3 --dir=d --threads=4");
        let expected = [
            format!("seqwrite [{all}] name=seqwrite rw=write end_fsync=1"),
            format!("randwrite [{all}] name=randwrite stonewall rw=randwrite end_fsync=1"),
            format!("seqread [{all}] name=seqread stonewall rw=read"),
            format!("randread [{all}] name=randread stonewall rw=randread"),
        ];
        assert_eq!(found, expected);
        let default = format!(" size={} bs=4096 loops=1 directory=./ numjobs=1 ", KEYWORDS.memory_mib * 4096);
        assert!(jobs("--profile=tiobench")[0].contains(&default));
        // What else is typed stays, unless the profile sets it as well.
        assert!(jobs("--iodepth=4 --profile=tiobench")[3].starts_with("randread [iodepth=4 buffered=0"));
    }

    // divergence: `--profile=act`, `device-names`
    #[test]
    fn act_reads_and_writes_each_device_at_its_rates() {
        let all = "direct=1 ioengine=sync random_generator=lfsr group_reporting=1 thread runtime=100000000us time_based=1";
        let line =
            "--profile=act --device-names=/dev/a,/dev/b --load=3 --test-duration=100 --threads-per-queue=4";
        let found = jobs(&format!("{line} --read-req-num-512-blocks=4 --large-block-op-kbytes=65536"));
        assert_eq!(found.len(), 4);
        let read = "rw=randread numjobs=4 rate_iops=1500 bs=2048";
        assert_eq!(found[0], format!("act-read-/dev/a [{all}] name=act-read-/dev/a filename=/dev/a {read}"));
        let write = "rw=randwrite rate_iops=72 bs=65536";
        assert_eq!(
            found[3],
            format!("act-write-/dev/b [{all}] name=act-write-/dev/b filename=/dev/b {write}")
        );
        // What Debian's fio makes of it by default.
        let default = jobs("--profile=act --device-names=/dev/a");
        assert!(default[0].ends_with(" runtime=86400000000us time_based=1] name=act-read-/dev/a filename=/dev/a rw=randread numjobs=8 rate_iops=250 bs=1536"));
        assert!(default[1].ends_with(" rw=randwrite rate_iops=12 bs=131072"));
        // Which are two files to the job.
        assert!(jobs("--profile=act --device-names=a:b")[0].contains(" filename=a:b "));
    }

    #[test]
    fn act_prepares_a_device_with_zeroes_and_then_at_random() {
        for prep in ["--prep", "--prep=1"] {
            let found = jobs(&format!("--profile=act --device-names=/dev/a {prep}"));
            assert_eq!(found.len(), 2, "{prep}");
            assert!(found[0].ends_with(" filename=/dev/a bs=1048576 zero_buffers rw=write"), "{}", found[0]);
            let salt = " stonewall filename=/dev/a bs=4096 ioengine=libaio iodepth=64 rw=randwrite";
            assert!(found[1].ends_with(salt) && !found[1].contains("runtime"), "{}", found[1]);
        }
        assert_eq!(jobs("--profile=act --device-names=/dev/a --prep=0").len(), 2);
        assert!(jobs("--profile=act --device-names=/dev/a --prep=0")[0].starts_with("act-read-"));
    }

    #[test]
    fn what_is_wrong_with_a_profile_is_said() {
        for (line, expected) in [
            ("--profile=tiobenc", "did you mean \"tiobench\""),
            ("--profile=act", "no device to work on"),
            ("--profile=act --device-names=a --load=0", "0 is too small"),
            ("--profile=act --device-names=a --large-block-op-kbytes=2000000", "less than one write"),
            ("--profile=tiobench --size=10%", "a number of MiB"),
        ] {
            let found = jobs(line).concat();
            assert!(found.contains(expected), "{line}: {found}");
        }
        let warned = read_with(&["--profile=tiobench", "--name=a"], &[]).unwrap().warnings;
        assert!(texts(&warned).contains("the jobs of the profile are run, and no others"));
    }
}
