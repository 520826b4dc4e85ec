//! The example of an engine: what its page shows, and a test runs.
//!
//! Invariant: the commands are for an empty directory and end by themselves.

/// A use of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// What it measures, in one sentence.
    pub text: &'static str,
    /// Lines for a shell, in which `fiord` is the program. A server that they start may go on: it is killed afterwards.
    pub commands: &'static str,
    /// What must be there.
    pub needs: &'static [Need],
}

impl Example {
    /// One that runs everywhere.
    pub const fn plain(text: &'static str, commands: &'static str) -> Example {
        Example { text, commands, needs: &[] }
    }
}

/// What an example needs beyond fiord and a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// What, and where it comes from: `nbdkit (package nbdkit)`.
    pub what: &'static str,
    /// A shell command that succeeds where it is there; `false` for what is on no machine by itself.
    pub check: &'static str,
}

impl Need {
    /// The rights of root.
    pub const ROOT: Need = Need { what: "root", check: "test \"$(id -u)\" = 0" };

    /// Direct I/O.
    pub const DIRECT: Need = Need {
        what: "a file system with direct I/O",
        check: "dd if=/dev/zero of=probe bs=4096 count=1 oflag=direct && rm probe",
    };
}
