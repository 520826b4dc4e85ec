//! What a process of fiord has in use after its jobs have ended.
//!
//! Invariant: it is asked while another job runs, so that the process itself is the same for any number of jobs.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use crate::{Place, Running};

/// How long jobs may take; some libraries need ten seconds to end a connection.
const TIME_MAX: Duration = Duration::from_secs(240);

/// How often a program is looked at, 25 ms apart.
const LOOKS: usize = 20;

/// Descriptors, threads and memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// Open descriptors.
    pub descriptors: usize,
    /// Threads.
    pub threads: usize,
    /// Memory that is resident.
    pub memory_bytes: u64,
}

/// What a process has in use when these jobs have ended, one after another, each given as its arguments. Further sections in the
/// arguments of a job run beside it. The name is that of the process among those that run in this place.
///
/// # Errors
/// If it cannot be started, or a job fails.
pub fn resources_after(place: &Place<'_>, jobs: &[Vec<String>], name: &str) -> Result<Resources, String> {
    let begun = format!("begun-{name}");
    let mut args = vec!["--thread".to_string()];
    for job in jobs {
        let name = job.iter().position(|word| word.starts_with("--name=")).map_or(job.len(), |at| at + 1);
        let (begin, rest) = job.split_at(name);
        args.extend(begin.iter().cloned().chain(["--stonewall".to_string()]).chain(rest.iter().cloned()));
    }
    args.extend(
        ["--name=last", "--stonewall", "--ioengine=null", "--rw=read", "--size=1g"].map(str::to_string),
    );
    args.extend(["--time_based", "--runtime=600", "--thinktime=1s"].map(str::to_string));
    args.push(format!("--exec_prerun=touch {begun}"));
    let begun = place.directory.join(begun);
    let _ = std::fs::remove_file(&begun);
    // What a library keeps of freed memory differs by thread unless all allocate in one place.
    let variables = [place.variables, &[("MALLOC_ARENA_MAX", OsStr::new("1"))]].concat();
    let place = Place { variables: &variables, ..*place };
    let running = place.start(&args.iter().map(String::as_str).collect::<Vec<_>>())?;
    let since = Instant::now();
    while !begun.exists() && running.memory_bytes().is_some() && since.elapsed() < TIME_MAX {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(500));
    let found = least_resources(&running);
    let ran = running.interrupt()?;
    let report = ran.report()?;
    let all = report["jobs"].as_array().into_iter().flatten();
    match found {
        Some(found)
            if begun.exists()
                && all.clone().count() > jobs.len()
                && all.clone().all(|job| job["error"] == 0) =>
        {
            Ok(found)
        }
        _ => Err(format!("{name}: {ran:?}")),
    }
}

/// The least of each that is found within half a second: a program opens files of `/proc` now and then, and a descriptor
/// that is open at one look alone was given back.
fn least_resources(running: &Running) -> Option<Resources> {
    let mut least = resources(running)?;
    for _ in 1..LOOKS {
        std::thread::sleep(Duration::from_millis(25));
        let found = resources(running)?;
        least = Resources {
            descriptors: least.descriptors.min(found.descriptors),
            threads: least.threads.min(found.threads),
            memory_bytes: least.memory_bytes.min(found.memory_bytes),
        };
    }
    Some(least)
}

fn resources(running: &Running) -> Option<Resources> {
    let memory_bytes = running.memory_bytes()?;
    Some(Resources { descriptors: running.descriptors(), threads: running.threads(), memory_bytes })
}
