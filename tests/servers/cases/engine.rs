//! What holds for every engine that reaches a server, whichever server that is.
//!
//! Invariant: the server is the caller's, and is asked for nothing here.

use std::time::{Duration, Instant};

use fiord_servers::{Finished, Place, Resources, Running, counts, number, resources_after};

/// An engine on a server.
pub struct Subject<'a> {
    pub place: Place<'a>,
    /// What each job needs: the engine, and where the server is.
    pub args: Vec<String>,
}

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

    /// A job that has come to its I/Os, however long connecting took.
    pub fn start_at_work(&self, words: &str) -> Running {
        self.start(words).at_work("a").unwrap()
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

    /// A process that is stopped and continued while it reads and writes loses no I/O; the blocks are verified.
    pub fn loses_no_io_when_it_is_stopped(&self, words: &str) {
        let job = "--rw=write --bs=4k --size=1m --verify=crc32c --verify_state_save=0 --rate_iops=100";
        let running = self.start_at_work(&format!("{job} {words}"));
        running.stop_and_continue().unwrap();
        let ran = running.wait().unwrap();
        let job = ran.job().unwrap();
        let all = (256, 1 << 20);
        assert_eq!(
            (ran.code, counts(&job), job["error"].as_i64()),
            (Some(0), [all, all, (0, 0)], Some(0)),
            "{ran:?}"
        );
    }

    /// What more jobs of one process took is given back: memory, threads and connections.
    pub fn gives_back_what_jobs_took(&self, words: &str, more: usize) {
        const FEW: usize = 2;
        let (few, many) = std::thread::scope(|scope| {
            let few = scope.spawn(|| self.resources_after(FEW, words));
            let many = self.resources_after(FEW + more, words);
            (few.join().unwrap(), many)
        });
        assert_eq!(
            (few.descriptors, few.threads),
            (many.descriptors, many.threads),
            "{words}: {few:?} and {many:?}"
        );
        // Each job has buffers of 16 MiB. A third of all: the C library may keep those of the last job, and a little of each.
        let allowed_bytes = few.memory_bytes + (more as u64 * (16 << 20)) / 3;
        assert!(many.memory_bytes < allowed_bytes, "{words}: {few:?} and {many:?}");
    }

    /// What a process has in use when this many jobs have ended and another one runs.
    fn resources_after(&self, jobs: usize, words: &str) -> Resources {
        let name = format!("{}-{jobs}", self.args[0].trim_start_matches("--ioengine="));
        let words = format!("{words} --filename_format=of-{jobs} --bs=1m --iodepth=16");
        resources_after(&self.place, &vec![self.job(&words); jobs], &name).unwrap()
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
