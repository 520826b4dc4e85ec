//! Paths with every possible byte, through the plans of every study.
//!
//! Invariant: nothing here touches a disk: the files that a plan would open are compared with those of the study.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use fiord_lab::Repeat;
use fiord_lab::check::{Check, PROFILES};
use fiord_lab::matrix::{BlockSize, Matrix};
use fiord_lab::qualify::{self, Class, Qualify, Test};
use fiord_lab::quick::Quick;
use fiord_lab::sweep::{Pictures, Sweep, SweptJob};
use fiord_lab::{Study, StudyTarget};
use fiord_options::job;
use fiord_plan::EngineName;
use fiord_plan::facts::{Facts, PathFacts};
use proptest::prelude::*;

use super::*;

/// What a job file or a command line takes for something else, beside single bytes.
const SEQUENCES: [&[u8]; 16] = [
    b";",
    b"#",
    b"\nfilename=/dev/loop1",
    b"\n[b]\n",
    b"$ncpus",
    b"$jobname.$jobnum.$filenum",
    b"${HOME}",
    b":",
    b"\\",
    b"\\:",
    b" ",
    b"\"",
    b"'",
    b"-",
    b"\xc3\xa4",
    b"\xff",
];

/// Every study, in a directory of its own below this one, or on this file that is only read.
fn studies(path: &Path, writable: bool) -> Vec<Box<dyn Study>> {
    let file = if writable { path.join("fiord-study-1").join("data") } else { path.to_path_buf() };
    let (path, size_bytes) = (path.to_path_buf(), 16 << 20);
    let target = StudyTarget {
        path,
        file,
        writable,
        size_bytes,
        engine: EngineName::IoUring,
        ..StudyTarget::default()
    };
    let (time, block) = (Duration::from_secs(7), BlockSize { text: "4k".to_string(), bytes: 4096 });
    let patterns = ["randrw", "read"].map(str::to_string);
    let sweep = || {
        let section = Section { files: vec![target.file.clone()], ..Section::new("sweep") };
        let job = SweptJob { sections: vec![section.with(target.settings(EngineName::Psync))] };
        Sweep::new(Vec::new(), job, Pictures::default(), &|_| Duration::ZERO).unwrap()
    };
    let mut studies: Vec<Box<dyn Study>> = vec![
        Box::new(Quick::new(target.clone(), time, Repeat::Auto)),
        Box::new(Matrix::new(target.clone(), &[block], &patterns, 4, time, Repeat::Auto).unwrap()),
        Box::new(sweep()),
    ];
    if writable {
        let (tests, class) = (Test::ALL.to_vec(), Class::Enterprise);
        let settings =
            qualify::Settings { tests, class, time, rounds_max: 25, confirmed: false, sprandom: None };
        studies.push(Box::new(Qualify::new(target.clone(), settings).unwrap().with_all_steps()));
    }
    let checks = PROFILES
        .iter()
        .filter(|_| writable)
        .map(|profile| Check::new(profile, &target, None, Repeat::Auto).unwrap());
    studies.extend(checks.map(|check| Box::new(check) as Box<dyn Study>));
    studies
}

/// Checks that every job opens exactly the files it was given.
fn assert_within(path: &Path, writable: bool) {
    let file = PathFacts { exists: true, size_bytes: 64 << 20, ..PathFacts::absent() };
    let facts = Facts {
        paths: [(path.to_path_buf(), file)].into(),
        engines: fiord_engine::registry::ENGINES,
        ..Facts::default()
    };
    for study in studies(path, writable) {
        // Steps that set the same options to other values open the same files.
        let mut seen = HashSet::new();
        let options = |step: &Step| {
            let settings = step.sections.iter().flat_map(|section| &section.own);
            settings.map(|setting| setting.spec.name).collect::<Vec<_>>()
        };
        for step in study.steps().iter().filter(|step| seen.insert(options(step))) {
            let (plan, _) = fiord_plan::build(&step.sections, &[], &facts, &RunSettings::default()).unwrap();
            assert!(!plan.jobs.is_empty());
            for job in &plan.jobs {
                let files: Vec<&PathBuf> = job.files.list.iter().map(|file| &file.path).collect();
                let within = |file: &&PathBuf| match writable {
                    true => file.parent() == Some(&path.join("fiord-study-1")),
                    false => **file == path && !job.files.writable,
                };
                assert!(files.iter().all(within), "{} {}: {files:?} of {path:?}", study.name(), step.name);
                assert_eq!(files, step.sections[job.section as usize].files.iter().collect::<Vec<_>>());
                let made: Vec<&PathBuf> =
                    others(job).filter(|made| !path.join("fiord-study-1").starts_with(made)).collect();
                assert!(made.is_empty(), "{} {}: {made:?}", study.name(), step.name);
            }
        }
    }
}

fn below_root(name: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&[b"/precious/", name].concat()))
}

#[test]
fn every_byte_stays_what_it_is() {
    for byte in (1..=255u8).filter(|byte| *byte != b'/') {
        for name in [vec![byte], vec![byte, b'a', byte, b'b', byte]] {
            assert_within(&below_root(&name), true);
            assert_within(&below_root(&name), false);
        }
    }
}

proptest! {
    #[test]
    fn no_sequence_leads_elsewhere(
        parts in prop::collection::vec(
            prop_oneof![
                prop::sample::select(SEQUENCES.to_vec()).prop_map(<[u8]>::to_vec),
                prop::collection::vec((1u8..).prop_filter("a slash", |byte| *byte != b'/'), 1..4),
            ],
            1..5,
        ),
        writable in any::<bool>(),
    ) {
        let name = parts.concat();
        prop_assume!(name != b"." && name != b"..");
        assert_within(&below_root(&name), writable);
    }
}

#[test]
fn a_job_that_would_leave_its_files_is_refused() {
    let step = |section: Section| Step::measure("a", vec![section], Duration::ZERO);
    let dir = std::env::temp_dir().canonicalize().unwrap();
    let machine = Machine::read().unwrap();
    let handed = Section { files: vec![dir.join("handed")], ..Section::new("a") };
    let handed = handed.with([(job::Amount::size, "4k".to_string())]);
    let planned = |section: &Section, of_user: bool| {
        StepPlan::of("run 1", &step(section.clone()), of_user, &machine)
            .map_err(|refused| (refused.is_refused, refused.why))
    };
    assert!(planned(&handed, false).is_ok());
    let logging = handed.clone().with([(job::Measure::write_bw_log, "elsewhere".to_string())]);
    let (is_refused, text) = planned(&logging, false).map(drop).unwrap_err();
    assert!(is_refused);
    assert!(text.contains("it would create elsewhere_bw.1.log, which is not a file of this study"), "{text}");
    assert!(planned(&logging, true).is_ok(), "the user's own options name it");
    // A link where a directory was.
    let link = dir.join(format!("fiord-link-{}", std::process::id()));
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    let moved = Section { files: vec![link.join("handed")], ..handed };
    let outcome = planned(&moved, false).map(drop);
    fs::remove_file(&link).unwrap();
    assert!(outcome.unwrap_err().1.contains("a part of the path is now a link, or missing"));
}
