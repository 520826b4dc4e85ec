//! Amounts that count zones (`8z`), of every option that takes them and in every mode of zones.
//!
//! Invariant: a zone counts as many bytes as the same job has in bytes, or the job is refused. What fio does with the same
//! words is compared in `tests/compat/cases/zones.rs`.

use fiord_options::value::ValueKind;

use super::*;

/// Two clones, so that `offset_increment` makes a difference.
const JOB: &str = "--name=a --filename=f --rw=write --numjobs=2";

fn options() -> impl Iterator<Item = &'static str> {
    let counts_zones = |option: &&Spec| option.kind == ValueKind::Amount;
    fiord_options::table::job_specs().filter(counts_zones).map(|option| option.name)
}

/// What amounts decide of the last clone of the job.
fn resolved(line: &str, file: &PathFacts) -> impl PartialEq + std::fmt::Debug + use<> {
    let job = jobs_on(line, &[("f", file.clone())]).pop().unwrap();
    (job.files.list, job.limits, job.access.strided, job.access.zoned)
}

fn zoned_device() -> PathFacts {
    PathFacts { zone_bytes: Some(64 * KIB), ..PathFacts::block(64 * MIB, 512) }
}

#[test]
fn zones_count_as_many_bytes_as_they_have() {
    let file = PathFacts::regular(64 * MIB);
    for (mode, target) in [
        ("--zonemode=strided --zonesize=64k", &file),
        ("--zonemode=strided --zonesize=64k --zonerange=256k", &file),
        ("--zonemode=zbd --zonesize=64k", &file),
        ("--zonemode=zbd --zonesize=64k --direct=1", &zoned_device()),
        ("--zonemode=zbd --direct=1", &zoned_device()),
    ] {
        for option in options() {
            let zones = resolved(&format!("{JOB} {mode} --{option}=10z"), target);
            let bytes = |bytes: u64| resolved(&format!("{JOB} {mode} --{option}={bytes}"), target);
            // On a device without `zonesize`, the length of a zone in bytes is not known when bytes become zones.
            if option == "zoneskip" && mode == "--zonemode=zbd --direct=1" {
                continue;
            }
            assert_eq!(zones, bytes(640 * KIB), "{mode} {option}");
            assert_ne!(zones, bytes(128 * KIB), "{mode} {option}");
        }
    }
}

#[test]
fn zones_without_a_length_are_refused() {
    for target in [PathFacts::regular(64 * MIB), PathFacts::absent(), PathFacts::block(64 * MIB, 512)] {
        for mode in
            ["", "--zonemode=none", "--zonemode=strided", "--zonemode=zbd", "--zonemode=zbd --zonesize=0"]
        {
            for option in options() {
                let line = format!("{JOB} --filesize=64m {mode} --{option}=10z");
                let told = messages(&line, &[("f", target.clone())]);
                assert!(
                    told.contains(&format!("{option}=10z counts zones")) || told.contains("zonesize"),
                    "{line}: {told}"
                );
            }
        }
    }
    let on_zoned_device = messages(&format!("{JOB} --offset=2z --size=1m"), &[("f", zoned_device())]);
    assert!(on_zoned_device.contains("offset=2z counts zones"), "{on_zoned_device}");
}

#[test]
fn strided_zones_reach_the_end_of_a_file_that_is_longer_than_their_amount() {
    let line = "--name=a --filename=f --rw=write --zonemode=strided --zonesize=64k --zoneskip=64k --size=2z --offset=1z";
    for target in [PathFacts::regular(MIB), PathFacts::block(MIB, 512)] {
        let job = jobs_on(line, &[("f", target)]).pop().unwrap();
        assert_eq!((job.files.list[0].length_bytes, job.limits.pass_bytes), (MIB - 64 * KIB, 128 * KIB));
    }
    let job = jobs_on(line, &[("f", PathFacts::absent())]).pop().unwrap();
    assert_eq!((job.files.list[0].length_bytes, job.limits.pass_bytes), (128 * KIB, 128 * KIB));
}

// divergence: `spr_num_regions` with fewer
#[test]
fn a_job_without_files_counts_zones_alike() {
    let strided = "--name=a --ioengine=null --zonemode=strided --zonesize=64k --size=10z --io_size=2z";
    let limits = jobs(strided)[0].limits;
    assert_eq!((limits.pass_bytes, limits.loop_bytes), (640 * KIB, 128 * KIB));
    let refused = messages("--name=a --ioengine=null --size=10z", &[]);
    assert!(refused.contains("size=10z counts zones, and zonemode=none has none"), "{refused}");
}
