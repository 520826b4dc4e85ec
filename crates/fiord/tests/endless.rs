//! Jobs that fio does not end (docs/divergences.md), so that it cannot be the oracle of a compat case.
//!
//! Invariant: each of them ends here by itself.

use crate::common::Dir;

// divergence: `--profile=act --prep`
#[test]
fn a_small_file_is_prepared_for_act() {
    let dir = Dir::new();
    dir.write("dev", vec![7; 1 << 20]);
    let ran = dir.run("--profile=act --device-names=dev --prep --output-format=json");
    let document = ran.assert_success().json();
    let written = |job: usize| document["jobs"][job]["write"]["io_bytes"].as_u64();
    assert_eq!((written(0), written(1)), (Some(1 << 20), Some(1 << 20)), "{document}");
}

// divergence: `thinktime_spin` with `runtime`
#[test]
fn spinning_pauses_end_with_the_runtime() {
    let line =
        "--output-format=json --name=a --ioengine=null --size=1g --rw=read --time_based --runtime=200ms";
    let document =
        Dir::new().run(&format!("{line} --thinktime=2ms --thinktime_spin=1ms")).assert_success().json();
    let read = &document["jobs"][0]["read"];
    assert!((2..=101).contains(&read["total_ios"].as_u64().unwrap()), "one before each pause: {read}");
    assert!(read["runtime"].as_u64() >= Some(190), "{read}");
}

// divergence: `flow`: jobs after a stonewall
#[test]
fn a_job_does_not_wait_for_those_of_its_flow_that_have_not_begun() {
    let line = "--output-format=json --ioengine=null --bs=4k --size=1m --flow=1 --name=a --name=b --stonewall \
                --name=c --wait_for=b";
    let document = Dir::new().run(line).assert_success().json();
    for job in document["jobs"].as_array().unwrap() {
        assert_eq!(job["read"]["total_ios"], 256, "{job}");
    }
}

// divergence: zones of `zoned_abs` that reach beyond
#[test]
fn zones_beyond_the_file_are_refused() {
    let line = "--name=a --filename=f --size=1m --rw=randrw --random_distribution=zoned_abs:60/1m";
    Dir::new().run(&format!("{line}:40/1m")).assert_status(1).assert_prints(&["random_distribution"]);
}
