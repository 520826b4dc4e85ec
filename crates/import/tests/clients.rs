//! Reports of several hosts, in the shapes that fio's client mode prints and fiord's own.
//!
//! Invariant: the texts were written by hand; what was recorded of fio is tested in `samples.rs`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests panic when something is wrong")]

use fiord_import::{JobFigures, Report, ReportFormat, best, read};

/// A host's part: a job and its group.
fn part(name: &str, jobs: u32, ios: u64, rate: &str, percentiles: &str) -> String {
    format!(
        "{name}: (groupid=0, jobs={jobs}): err= 0: pid=7: Thu Nov 26 21:29:54 2026\n  \
         read: IOPS={ios}, BW={rate}(39.1KiB/1000msec)\n    clat (nsec): min=10, max=99, avg=45.58, stdev=7.73\n    \
         clat percentiles (nsec):\n     |{percentiles}\n     issued rwts: total={ios},0,0,0 short=0,0,0,0 dropped=0,0,0,0\n"
    )
}

fn with_group(name: &str, ios: u64) -> String {
    let percentiles = " 50.00th=[   20], 99.00th=[   30], 99.90th=[   40], 99.95th=[   41]";
    let job = part(name, 1, ios, "39.1KiB/s (40.0kB/s)", percentiles);
    let group = "   READ: bw=39.1KiB/s (40.0kB/s), 39.1KiB/s-39.1KiB/s (40.0kB/s-40.0kB/s), io=39.1KiB (40.0kB), run=1000-1000msec";
    format!("{job}\nRun status group 0 (all jobs):\n{group}\n")
}

fn sum(ios: u64) -> String {
    part(
        "All clients",
        2,
        ios,
        "19.6Gi (21.0G)",
        "  50th=[   20],  99th=[   30], 100th=[   40], 100th=[   41]",
    )
}

const CLIENT: &str = "hostname=vm, be=0, 64-bit, os=Linux, arch=x86-64, fio=fio-3.42, flags=1\n";

fn only(text: &str) -> Report {
    let mut reports = read(text).unwrap();
    assert_eq!(reports.len(), 1, "{reports:?}");
    reports.remove(0)
}

fn ios(job: &JobFigures) -> u64 {
    job.directions[0].ios.unwrap()
}

#[test]
fn text_of_two_clients_is_one_report_with_their_sum_beside_them() {
    let heading = "<vm> a: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=null, iodepth=1\n";
    let text = format!(
        "{CLIENT}{CLIENT}{heading}{heading}<vm> Starting 1 process\nJobs: 2 (f=2)<vm> \n<vm> \n{}{}{}",
        with_group("a", 10),
        with_group("a", 11),
        sum(21)
    );
    let report = only(&text);
    assert_eq!((report.damage.as_slice(), report.version.as_deref()), (&[][..], Some("fio-3.42")));
    assert_eq!(report.hosts, ["client 1", "client 2"], "both were announced before either reported");
    assert_eq!(report.jobs.iter().map(ios).collect::<Vec<_>>(), [10, 11]);
    assert_eq!(report.name_of(&report.jobs[1]), "a@client 2");
    assert!(report.jobs.iter().all(|job| job.heading.is_some()));
    let all = report.all_hosts.unwrap();
    assert_eq!((ios(&all), all.directions[0].bandwidth), (21, Some(21_045_339_750)));
    let percentiles = &all.directions[0].clat.as_ref().unwrap().percentiles;
    let percents: Vec<f64> = percentiles.iter().map(|each| each.percent).collect();
    assert_eq!(percents, [50.0, 99.0], "four that are called 100 are none");
}

#[test]
fn text_of_fiord_names_the_host_of_each_part() {
    let text = format!("<db1> \n{}<db2> \n{}{}", with_group("a", 10), with_group("a", 11), sum(21));
    let report = only(&text);
    assert_eq!(report.hosts, ["db1", "db2"]);
    assert_eq!(report.of_host("db2").unwrap().jobs.iter().map(ios).collect::<Vec<_>>(), [11]);
}

#[test]
fn reports_of_one_client_over_time_are_not_joined() {
    let text = format!("{CLIENT}<vm> \n{}<vm> \n{}", with_group("a", 10), with_group("a", 20));
    let reports = read(&text).unwrap();
    assert_eq!(reports.iter().map(|report| ios(&report.jobs[0])).collect::<Vec<_>>(), [10, 20]);
}

#[test]
fn json_of_clients_whose_options_differ_gives_each_job_its_own() {
    let entry = |host: &str, port: u32, ios: u32| {
        format!(
            r#"{{"jobname":"a","groupid":0,"job_start":5,"error":0,"read":{{"io_bytes":4096,"total_ios":{ios},"runtime":1000}},"hostname":"{host}","port":{port}}}"#
        )
    };
    let text = format!(
        r#"{{"fio version":"fio-3.42","global options":[{{"hostname":"h","port":1,"bs":"4k"}},{{"hostname":"h","port":2,"bs":"8k"}}],
        "client_stats":[{},{},{}],"disk_util":[]}}"#,
        entry("h", 1, 10),
        entry("h", 2, 11),
        entry("h", 2, 21).replace("\"a\"", "\"All clients\"")
    );
    let report = best(read(&text).unwrap()).unwrap();
    assert_eq!(report.format, ReportFormat::Json);
    assert_eq!(report.hosts, ["h:1", "h:2"]);
    assert_eq!(report.global_options, []);
    let sizes: Vec<&str> = report.jobs.iter().map(|job| job.options[0].1.as_str()).collect();
    assert_eq!(sizes, ["4k", "8k"]);
    assert_eq!(report.all_hosts.map(|all| ios(&all)), Some(21));
}
