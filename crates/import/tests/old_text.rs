//! Normal text as people keep and post it: of old versions, damaged, several runs in one file.
//!
//! Invariant: a damaged line costs its own figures, is named with its place, and changes no other figure.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests panic when something is wrong")]

use fiord_import::{DirectionName, JobFigures, Report, best, read};

fn only(text: &str) -> Report {
    let mut reports = read(text).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(reports.len(), 1, "{reports:?}");
    reports.remove(0)
}

/// The rates of the first direction of a job.
fn rates(job: &JobFigures) -> (Option<f64>, Option<u64>, Option<u64>) {
    let of = &job.directions[0];
    (of.ios_per_s(), of.runtime_ms, of.bytes)
}

const FIO_1: &str = "\
db: (g=0): rw=randrw, bs=8K-8K/8K-8K, ioengine=sync, iodepth=1
...
db: (g=0): rw=randrw, bs=8K-8K/8K-8K, ioengine=sync, iodepth=1
fio 1.57
Starting 4 threads
Jobs: 4 (f=4): [mmmm] [100.0% done] [240K/232K /s] [29 /28  iops] [eta 00m:00s]
db: (groupid=0, jobs=4): err= 0: pid=77
  read : io=2400.0KB, bw=240.0KB/s, iops=30 , runt= 10000msec
    clat (usec): min=38 , max=2204.5K, avg=782.11, stdev=411.02
    bw (KB/s) : min=   10, max=  260, per=25.00%, avg=60.00, stdev=88.40
  write: io=2000.0KB, bw=200.0KB/s, iops=25 , runt= 10000msec
    clat (usec): min=96 , max=6120 , avg=801.90, stdev=70.55
  cpu          : usr=3.01%, sys=12.40%, ctx=2104, majf=0, minf=51
     issued r/w/d: total=300/250/0, short=0/0/0
     lat (usec): 50=0.61%, 100=99.39%

Run status group 0 (all jobs):
   READ: io=2400.0KB, aggrb=240KB/s, minb=245KB/s, maxb=245KB/s, mint=10000msec, maxt=10000msec
";

#[test]
fn rates_and_the_version_of_fio_1_and_2_are_read() {
    let report = only(FIO_1);
    assert_eq!(report.version.as_deref(), Some("fio-1.57"));
    assert_eq!(rates(&report.jobs[0]), (Some(30.0), Some(10_000), Some(2_457_600)));
    let clat = report.jobs[0].directions[0].clat.as_ref().unwrap();
    assert_eq!((clat.min_ns, clat.max_ns), (Some(38_000), Some(2_204_500_000)));
    let group = &report.groups[0].directions[0];
    assert!(group.bandwidth_min <= group.bandwidth, "in powers of 1000: {group:?}");
    assert_eq!(report.jobs[0].heading.as_ref().unwrap().rw.as_deref(), Some("randrw"));
    assert_eq!(report.damage, []);
    let of_2 = "\
a: (groupid=0, jobs=1): err= 0: pid=9: Sat Nov 21 01:16:52 2026
  write: io=8192.0KB, bw=512000KB/s, iops=4000, runt=    16msec
     issued    : total=r=0/w=64/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0
Run status group 0 (all jobs):
";
    assert_eq!(rates(&only(of_2).jobs[0]), (Some(4000.0), Some(16), Some(8 << 20)));
}

/// A run of two sections of one name, and of another.
const FIO_3: &str = "\
one: (g=0): rw=write, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=8
one: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1
fio-3.19
Starting 2 processes

one: (groupid=0, jobs=1): err= 0: pid=1: Thu Nov 26 22:46:52 2026
  write: IOPS=2000, BW=8000KiB/s (8192kB/s)(16.0MiB/2000msec); 0 zone resets
    clat (usec): min=10, max=90, avg=20.00, stdev= 5.00
    clat percentiles (usec):
     | 50.00th=[   20], 99.00th=[   89]
  cpu          : usr=1.00%, sys=2.00%, ctx=300, majf=0, minf=7
     issued rwts: total=0,4000,0,0 short=0,0,0,0 dropped=0,0,0,0
one: (groupid=0, jobs=1): err= 0: pid=2: Thu Nov 26 22:46:52 2026
  read: IOPS=1000, BW=4000KiB/s (4096kB/s)(8000KiB/2000msec)
    clat (usec): min=10, max=70, avg=30.00, stdev= 5.00
     issued rwts: total=2000,0,0,0 short=0,0,0,0 dropped=0,0,0,0

Run status group 0 (all jobs):
   READ: bw=4000KiB/s (4096kB/s), 4000KiB/s-4000KiB/s (4096kB/s-4096kB/s), io=8000KiB (8192kB), run=2000-2000msec

Disk stats (read/write):
  sda: ios=2000/4000, merge=0/0, ticks=10/20, in_queue=30, util=90.00%
";

fn engines(report: &Report) -> Vec<Option<&str>> {
    report.jobs.iter().map(|job| job.heading.as_ref()?.ioengine.as_deref()).collect()
}

#[test]
fn jobs_of_one_name_have_the_headings_of_their_own_sections() {
    assert_eq!(engines(&only(FIO_3)), [Some("libaio"), Some("psync")]);
    // One of the blocks is missing: what the other one did tells which it is.
    let (before, rest) = FIO_3.split_once("one: (groupid=0, jobs=1): err= 0: pid=1").unwrap();
    let (_, second) = rest.split_once("one: (groupid=0").unwrap();
    assert_eq!(engines(&only(&format!("{before}one: (groupid=0{second}"))), [Some("psync")]);
    // Three blocks that read, of two sections that read: a clone of either.
    let alike = FIO_3.replace("rw=write", "rw=read").replace("write:", "read:").replace("=0,4000", "=4000,0");
    assert_eq!(engines(&only(&alike)), [Some("libaio"), Some("psync")], "in their order");
    let (head, tail) = alike.split_once("\nRun status").unwrap();
    let last = &head[head.rfind("one: (groupid").unwrap()..];
    let cloned = only(&format!("{head}{last}\nRun status{tail}"));
    assert_eq!(engines(&cloned), [None, None, None]);
}

#[test]
fn each_run_of_a_file_has_its_own_headings_version_and_messages() {
    let failed = "fio: pid=77, err=5/file:io_u.c:1803, func=io_u error, error=Input/output error\n";
    let reports = read(&format!("{failed}{FIO_3}{FIO_1}")).unwrap();
    let versions: Vec<_> = reports.iter().map(|report| report.version.as_deref()).collect();
    assert_eq!(versions, [Some("fio-3.19"), Some("fio-1.57")]);
    assert_eq!(engines(&reports[0]), [Some("libaio"), Some("psync")]);
    assert_eq!(engines(&reports[1]), [Some("sync")]);
    assert_eq!((reports[0].messages.len(), reports[1].messages.len()), (1, 0));
    let chosen = best(reports).unwrap();
    assert_eq!((chosen.version.as_deref(), chosen.others.len()), (Some("fio-1.57"), 1), "the last is shown");
    // The reports of `--status-interval` follow one list of headings.
    let (head, rest) = FIO_3.split_once("\none: (groupid").unwrap();
    let twice = format!("{head}\none: (groupid{rest}\none: (groupid{rest}");
    let reports = read(&twice).unwrap();
    assert_eq!(reports.len(), 2);
    assert!(reports.iter().all(|report| engines(report) == [Some("libaio"), Some("psync")]));
    // Formats of one run are not several runs.
    let terse = "3;fio-3.19;one;0;x\n";
    assert!(best(read(&format!("{terse}{FIO_3}")).unwrap()).unwrap().others.is_empty());
}

/// Each line of a report, cut at every character, and without any figure that has a digit replaced.
#[test]
fn a_damaged_line_costs_its_own_figures_and_is_named() {
    let whole = only(FIO_3);
    assert_eq!(whole.damage, []);
    let lines: Vec<&str> = FIO_3.lines().collect();
    let mut named = 0;
    for (index, line) in lines.iter().enumerate() {
        for end in 0..line.len() {
            let mut cut = lines.clone();
            cut[index] = &line[..end];
            let reports = read(&cut.join("\n")).unwrap_or_else(|why| panic!("{index}:{end}: {why}"));
            let report = reports.last().unwrap();
            named += report.damage.iter().filter(|why| why.line == index as u32 + 1).count();
            let other = report.jobs.last().unwrap();
            // The second job and the disk keep their figures, whatever happens to a line of the first one.
            if (6..=11).contains(&index) {
                assert_eq!(rates(other), (Some(1000.0), Some(2000), Some(8_192_000)), "{index}:{end}");
                assert_eq!(report.disks, whole.disks, "{index}:{end}");
            }
        }
    }
    assert!(named > 300, "{named} cuts were named");
}

#[test]
fn a_cut_character_is_named_and_the_figures_before_and_below_it_are_read() {
    let report = only(&FIO_3.replace("(16.0MiB/2000msec); 0 zone resets", "(16.0MiB/2000mse"));
    let write = &report.jobs[0].directions[0];
    assert_eq!((write.name, write.iops, write.bytes), (DirectionName::Write, Some(2000.0), Some(16 << 20)));
    assert_eq!((write.runtime_ms, write.ios), (None, Some(4000)));
    assert_eq!(write.clat.as_ref().unwrap().max_ns, Some(90_000));
    let named: Vec<String> = report.damage.iter().map(ToString::to_string).collect();
    assert_eq!(named, ["7:53: the line ends before its time"]);
    let figure = only(&FIO_3.replace("ctx=300", "ctx=3x0"));
    assert_eq!(figure.damage[0].to_string(), "11:44: ctx: \"3x0\" is not a figure");
    assert_eq!(figure.jobs[0].cpu.system_percent, Some(2.0));
    // A heading of a job, without which its figures would be those of the job before.
    let heading = only(&FIO_3.replace("err= 0: pid=2", "err= "));
    assert_eq!((heading.jobs.len(), heading.jobs[1].error, heading.damage.len()), (2, None, 1));
    // A disk: it is there, and what it did is not known.
    let disk = only(&FIO_3.replace("ios=2000/4000", "ios=2000/"));
    assert_eq!((disk.disks.len(), disk.disks[0].ios, disk.damage.len()), (1, [None, None], 1));
    let terse = format!("{FIO_3}3;fio-3.19;one;0;x\n");
    assert_eq!(only(&terse).damage.len(), 1, "a line that is no report beside one that is");
}

#[test]
fn a_report_without_its_end_is_named() {
    let (head, _) = FIO_3.split_once("    clat percentiles").unwrap();
    let report = only(head);
    assert_eq!(report.damage.len(), 1, "{report:?}");
    assert!(
        report.damage[0].problem.starts_with("the report ends before \"Run status group\""),
        "{report:?}"
    );
    assert_eq!(engines(&report), [Some("libaio")], "by what it did");
}

/// fio 3.19 counts syncs as short reads, and none of them where it counts syncs.
#[test]
fn syncs_that_are_counted_elsewhere_are_not_reads() {
    let sync = "  fsync/fdatasync/sync_file_range:\n    sync (nsec): min=270, max=2173, avg=335.10, stdev=236.30\n  cpu  ";
    let report =
        only(&FIO_3.replacen("  cpu  ", sync, 1).replace("0,4000,0,0 short=0", "0,4000,0,0 short=63"));
    let job = &report.jobs[0];
    assert_eq!((job.directions.len(), job.sync.ios, job.sync.lat.is_some()), (1, None, true));
}
