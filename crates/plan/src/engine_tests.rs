//! The tests that every engine is put to, and where each of them is.
//!
//! Invariant: an engine declares all of them; where it has no test, it says why. The table in `docs/engines.md` and the
//! tests themselves derive from what the engines declare.

/// A test that every engine is put to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineTest {
    /// Data that was written is read by another program.
    Data,
    /// I/Os, bytes and latencies are counted.
    Counts,
    /// Transfers that end short are continued.
    Short,
    /// System calls that are interrupted lose nothing.
    Interrupted,
    /// An error in the middle.
    Error,
    /// The target is taken away.
    Gone,
    /// I/O that never completes does not hold up the end.
    Stuck,
    /// Memory, descriptors and threads are given back.
    GivenBack,
}

impl EngineTest {
    /// All, in the order of the table.
    pub const ALL: [EngineTest; 8] = [
        EngineTest::Data,
        EngineTest::Counts,
        EngineTest::Short,
        EngineTest::Interrupted,
        EngineTest::Error,
        EngineTest::Gone,
        EngineTest::Stuck,
        EngineTest::GivenBack,
    ];

    /// Its column.
    pub const fn name(self) -> &'static str {
        match self {
            EngineTest::Data => "data",
            EngineTest::Counts => "counts",
            EngineTest::Short => "short",
            EngineTest::Interrupted => "EINTR",
            EngineTest::Error => "error",
            EngineTest::Gone => "gone",
            EngineTest::Stuck => "stuck",
            EngineTest::GivenBack => "given back",
        }
    }

    /// What is tested.
    pub const fn meaning(self) -> &'static str {
        match self {
            EngineTest::Data => {
                "data written are the bytes that another program reads, and the other way round"
            }
            EngineTest::Counts => "I/Os, bytes and latencies are counted, and are those of the other end",
            EngineTest::Short => "a transfer that ends short is continued where it ended",
            EngineTest::Interrupted => {
                "a process that is stopped and continued loses no I/O (system calls end with `EINTR`)"
            }
            EngineTest::Error => "an error in the middle (`EIO`) ends the job with its errno and its report",
            EngineTest::Gone => "so does a target that is taken away",
            EngineTest::Stuck => "Ctrl-C ends a run whose I/O never completes",
            EngineTest::GivenBack => {
                "mappings, descriptors and threads are those of before when a job has ended"
            }
        }
    }
}

/// Where an engine is put to a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tested {
    /// In `crates/fiord/tests/every_engine.rs`, with others.
    Together,
    /// In a test of its own: its file and its function.
    By(&'static str, &'static str),
    /// Nowhere, for this reason.
    Never(&'static str),
}

/// What an engine declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineTests {
    /// `EngineTest::Data`.
    pub data: Tested,
    /// `EngineTest::Counts`.
    pub counts: Tested,
    /// `EngineTest::Short`.
    pub short: Tested,
    /// `EngineTest::Interrupted`.
    pub interrupted: Tested,
    /// `EngineTest::Error`.
    pub error: Tested,
    /// `EngineTest::Gone`.
    pub gone: Tested,
    /// `EngineTest::Stuck`.
    pub stuck: Tested,
    /// `EngineTest::GivenBack`.
    pub given_back: Tested,
}

const NO_DATA: Tested = Tested::Never("it moves no data");
const NO_IO: Tested = Tested::Never("it does no I/O");

const CALLS: &str = "crates/fiord/tests/engine_calls.rs";
const CONNECTIONS: &str = "crates/fiord/tests/connections.rs";

impl EngineTests {
    /// Those of an engine on regular files, all of them together with others.
    pub const ON_FILES: EngineTests = EngineTests {
        data: Tested::Together,
        counts: Tested::Together,
        short: Tested::Together,
        interrupted: Tested::Together,
        error: Tested::Together,
        gone: Tested::Together,
        stuck: Tested::Together,
        given_back: Tested::Together,
    };

    /// Those of an engine that changes the space or the size of files.
    pub const RESIZING: EngineTests = EngineTests { data: NO_DATA, short: NO_DATA, ..EngineTests::ON_FILES };

    /// Those of an engine that makes a call for each name.
    pub const BY_NAME: EngineTests = EngineTests {
        data: NO_DATA,
        counts: Tested::By(CALLS, "each_name_is_called_once_in_each_pass_and_each_block_counts"),
        short: NO_DATA,
        interrupted: Tested::Never("the kernel interrupts none of its calls on a local file system"),
        error: Tested::By(CALLS, "a_call_that_fails_ends_the_job_and_no_other"),
        gone: Tested::Never("a name is not held open; a file system that is gone is an error as any other"),
        stuck: Tested::By(
            "crates/fiord/tests/every_engine.rs",
            "a_call_on_a_name_that_never_returns_does_not_hold_up_the_end",
        ),
        given_back: Tested::Together,
    };

    /// Those of an engine that makes connections.
    pub const CONNECTED: EngineTests = EngineTests {
        data: Tested::By(CONNECTIONS, "what_one_job_sends_the_other_receives_and_verifies"),
        counts: Tested::By(CONNECTIONS, "another_program_receives_the_bytes_and_then_the_last_message"),
        short: Tested::By(CONNECTIONS, "what_another_program_sends_counts_until_it_closes"),
        interrupted: Tested::By(CONNECTIONS, "a_process_that_is_stopped_and_continued_loses_no_io"),
        error: Tested::By(CONNECTIONS, "an_end_that_is_not_there_or_goes_away_is_an_error_with_its_reason"),
        gone: Tested::By(CONNECTIONS, "an_end_that_is_not_there_or_goes_away_is_an_error_with_its_reason"),
        stuck: Tested::By(CONNECTIONS, "every_wait_ends_when_the_run_is_interrupted"),
        given_back: Tested::Together,
    };

    /// Those of an engine that does other work than I/O, or none, and where its cycles are counted.
    pub const fn without_io(counts: Tested) -> EngineTests {
        EngineTests {
            data: NO_IO,
            counts,
            short: NO_IO,
            interrupted: NO_IO,
            error: NO_IO,
            gone: NO_IO,
            stuck: NO_IO,
            given_back: Tested::Together,
        }
    }

    /// Where the engine is put to a test.
    pub const fn of(&self, test: EngineTest) -> Tested {
        match test {
            EngineTest::Data => self.data,
            EngineTest::Counts => self.counts,
            EngineTest::Short => self.short,
            EngineTest::Interrupted => self.interrupted,
            EngineTest::Error => self.error,
            EngineTest::Gone => self.gone,
            EngineTest::Stuck => self.stuck,
            EngineTest::GivenBack => self.given_back,
        }
    }
}
