//! What holds for every engine that reaches a server through a C library, whichever server that is.
//!
//! Invariant: the server is the caller's, and is asked for nothing here.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use fiord_servers::{Finished, Place, Running, counts, eventually, number};

/// An engine on a server.
pub struct Subject<'a> {
    pub place: Place<'a>,
    /// What each job needs: the engine, and where the server is.
    pub args: Vec<String>,
}

/// Descriptors, threads and memory of a process.
type Resources = (usize, usize, u64);

impl Subject<'_> {
    /// A job of these words, split at spaces.
    pub fn job(&self, words: &str) -> Vec<String> {
        let mut args = vec!["--name=a".to_string()];
        args.extend(self.args.iter().cloned());
        args.extend(words.split_whitespace().map(str::to_string));
        args
    }

    pub fn fiord(&self, words: &str) -> Finished {
        self.place.fiord(&strings(&self.job(words))).unwrap()
    }

    pub fn fio(&self, words: &str) -> Finished {
        self.place.fio(&strings(&self.job(words))).unwrap()
    }

    pub fn start(&self, words: &str) -> Running {
        self.place.start(&strings(&self.job(words))).unwrap()
    }

    /// What fiord says to a job that it cannot run.
    pub fn refusal(&self, words: &str) -> String {
        let ran = self.fiord(words);
        assert_eq!(ran.code, Some(1), "{words}: {ran:?}");
        format!("{}{}", ran.stdout, ran.stderr)
    }

    /// Both programs report the same numbers of I/Os, bytes and syncs of each of these jobs, which they run in turn.
    pub fn counts_are_those_of_fio(&self, jobs: &[&str]) {
        for words in jobs {
            let [ours, theirs] = [self.fiord(words), self.fio(words)];
            let figures = |ran: &Finished| {
                let job = ran.job().unwrap();
                (counts(&job), number(&job, "sync", "total_ios"), job["error"].as_i64())
            };
            assert_eq!(figures(&ours), figures(&theirs), "{words}: {ours:?}");
            assert_eq!((ours.code, figures(&ours).2), (Some(0), Some(0)), "{words}: {ours:?}");
        }
    }

    /// A job whose server stops answering ends soon after SIGINT, with its report.
    pub fn ends_although_the_server_has_stopped(&self, words: &str, stop: impl Fn(), go_on: impl Fn()) {
        // On a machine with other work, connecting may take longer than the first of these.
        for seconds in [2, 20] {
            let running = self.start(&format!("{words} --time_based --runtime=60"));
            std::thread::sleep(Duration::from_secs(seconds));
            stop();
            std::thread::sleep(Duration::from_millis(500));
            let asked = Instant::now();
            let ran = running.interrupt().unwrap();
            let took = asked.elapsed();
            go_on();
            let job = ran.job().unwrap();
            if number(&job, "read", "total_ios") + number(&job, "write", "total_ios") == 0 {
                continue;
            }
            // Two seconds on a machine without other work; the watchdog would take ten.
            assert!(took < Duration::from_secs(8), "{words}: {took:?}: {ran:?}");
            assert_eq!((ran.code, job["error"].as_i64()), (Some(130), Some(0)), "{words}: {ran:?}");
            return;
        }
        panic!("{words}: no I/O in 20 seconds");
    }

    /// What more jobs of one process took is given back: memory, threads and connections.
    pub fn gives_back_what_jobs_took(&self, words: &str, more: usize) {
        const FEW: usize = 2;
        let (few, many) = std::thread::scope(|scope| {
            let few = scope.spawn(|| self.resources_after(FEW, words));
            let many = self.resources_after(FEW + more, words);
            (few.join().unwrap(), many)
        });
        assert_eq!((few.0, few.1), (many.0, many.1), "{words}: {few:?} and {many:?}");
        // Each job has buffers of 16 MiB. A third of all: the C library may keep those of the last job, and a little of each.
        let allowed_bytes = few.2 + (more as u64 * (16 << 20)) / 3;
        assert!(many.2 < allowed_bytes, "{words}: {few:?} and {many:?}");
    }

    /// What a process has in use when this many jobs have ended and another one runs.
    fn resources_after(&self, jobs: usize, words: &str) -> Resources {
        let mut args = vec!["--thread".to_string()];
        for _ in 0..jobs {
            args.extend(
                self.job(&format!("{words} --filename_format=of-{jobs} --bs=1m --iodepth=16 --stonewall")),
            );
        }
        let name = format!("begun-{jobs}");
        let begun = self.place.directory.join(&name);
        let _ = std::fs::remove_file(&begun);
        args.extend(
            ["--name=last", "--stonewall", "--ioengine=null", "--size=1g", "--time_based", "--runtime=600"]
                .map(str::to_string),
        );
        args.extend([
            "--rw=read".to_string(),
            "--thinktime=1s".into(),
            format!("--exec_prerun=touch {name}"),
        ]);
        // What a library keeps of freed memory differs by thread unless all allocate in one place.
        let variables = [self.place.variables, &[("MALLOC_ARENA_MAX", OsStr::new("1"))]].concat();
        let place = Place { variables: &variables, ..self.place };
        let running = place.start(&strings(&args)).unwrap();
        // Some libraries need ten seconds to end a connection.
        let last_runs = (0..4).any(|_| eventually(|| begun.exists() || running.memory_bytes().is_none()));
        std::thread::sleep(Duration::from_millis(500));
        let memory_bytes = running.memory_bytes().unwrap_or_default();
        let resources = (running.descriptors(), running.threads(), memory_bytes);
        let ran = running.interrupt().unwrap();
        assert!(last_runs && begun.exists() && memory_bytes > 0, "{words}: {ran:?}");
        for job in ran.report().unwrap()["jobs"].as_array().unwrap() {
            assert_eq!(job["error"], 0, "{words}: {ran:?}");
        }
        resources
    }
}

/// As the programs take them.
pub fn strings(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// Whether the bytes are a pattern, from the start of each block of 4 KiB.
pub fn repeats(bytes: &[u8], pattern: &[u8]) -> bool {
    bytes.chunks(4096).all(|block| block.iter().eq(pattern.iter().cycle().take(block.len())))
}
