//! Messages, and their numbers and bytes in frames.
//!
//! Invariant: a number means one message for ever. Fields are only added behind the last; what an older program does not
//! know is left unread.

use fiord_fleet::{Fate, HostFacts};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::frame;
use crate::section::Sections;

/// Both ends must have the first number in common; of the second the lower one is spoken.
pub const PROTOCOL: (u16, u16) = (2, 3);

/// The second number from which on a controller takes logs.
pub const TAKES_LOGS: u16 = 1;

/// The second number from which on a controller keeps states of verification and has triggers.
pub const KEEPS_STATES: u16 = 3;

/// How far the writes of a job came that are verified later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedState {
    /// The job's name; each `/` may be a dot, as in names of files.
    pub job: Vec<u8>,
    /// Its number in the run, from 0.
    pub number: u32,
    /// What the file of a run on one machine holds.
    pub bytes: Vec<u8>,
}

/// What either end says first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// See [`PROTOCOL`].
    pub protocol: (u16, u16),
    /// The version of fiord.
    pub fiord: String,
    /// The number of its process.
    pub pid: u32,
    /// The name of its machine.
    pub hostname: String,
}

/// What a host is to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prepare {
    /// The name of the run: of the file that a lost controller leaves.
    pub run: String,
    /// The host's number, from 0 (`$hostnum`).
    pub number: u32,
    /// How many hosts there are (`$hosts`).
    pub hosts: u32,
    /// The host's name in the list.
    pub name: String,
    /// What is run.
    pub sections: Sections,
    /// Settings of `[global]` sections, which the report echoes.
    pub global_options: Vec<(String, String)>,
    /// Nothing may be written or trimmed (`--readonly`).
    pub is_readonly: bool,
    /// `--max-jobs`.
    pub max_jobs: Option<u32>,
    /// Whether findings are made.
    pub has_findings: bool,
    /// Whether a lost controller ends the run only at its own end (`--on-lost=finish`).
    pub finishes_when_lost: bool,
    /// A study, which is carried out there instead of sections.
    pub study: Option<StudyCommand>,
    /// The path of a job file of the host's own, which is run instead of sections (`--remote-config`).
    pub remote_config: Option<Vec<u8>>,
}

/// A study as its command line says it: the host that carries it out reads it, and finds its own disks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyCommand {
    /// The subcommand and its arguments, in bytes.
    pub words: Vec<Vec<u8>>,
    /// Files of the controller that they name: name and contents.
    pub files: Vec<(Vec<u8>, Vec<u8>)>,
    /// Environment variables of the controller that these files name: name and value.
    pub variables: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What a study on a host has found; sent as its report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyReport {
    /// The exit status that it would have there.
    pub status: u8,
    /// The verdict, as it is printed, if it gives one.
    pub verdict: Option<String>,
    /// The conclusion in a sentence; empty if nothing was measured.
    pub conclusion: String,
    /// All of it for people.
    pub text: String,
    /// All of it for programs: the document that the subcommand prints with `--json`.
    pub json: String,
}

/// What an agent has removed of what others left on its machine; sent as its report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    /// Files and directories, with their sizes in bytes.
    pub removed: Vec<(String, u64)>,
    /// What stays, each with the reason.
    pub kept: Vec<(String, String)>,
    /// Processes of agents at work, for which nothing was removed.
    pub running: Vec<u32>,
}

/// The reports of runs whose controller was lost that a machine has; sent as its report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected {
    /// By name.
    pub reports: Vec<LeftReport>,
    /// Why they cannot be read, if that is so.
    pub problem: Option<String>,
}

/// What an agent keeps of a run when its controller is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its report, as it would have been sent.
    pub report: Vec<u8>,
    /// How it ended.
    pub end: End,
}

/// A report that an agent has left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftReport {
    /// The run, and the host as its controller called it: `RUN-HOST`.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// A `Kept`, as it was written; empty unless its run was asked for.
    pub kept: Vec<u8>,
}

/// What is sent as a report.
pub trait Sent: Serialize + DeserializeOwned {
    /// As it is sent.
    fn encode(&self) -> Vec<u8> {
        // Memory is written to memory, which cannot fail for these types.
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// What was sent.
    ///
    /// # Errors
    /// It is none.
    fn decode(bytes: &[u8]) -> Result<Self, String> {
        postcard::from_bytes(bytes).map_err(|why| why.to_string())
    }
}

impl Sent for StudyReport {}
impl Sent for Cleaned {}
impl Sent for Kept {}
impl Sent for Collected {}

/// Something that is told to people.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Told {
    /// The text, with the place in the user's file.
    pub text: String,
    /// Whether data would have been destroyed.
    pub is_unsafe: bool,
}

/// What the jobs have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// I/Os: reads, writes, trims.
    pub ios: [u64; 3],
    /// Bytes.
    pub bytes: [u64; 3],
    /// Share that is done, in thousandths, if known.
    pub done_permille: Option<u16>,
}

/// The logs of a run. A host tells them by numbers alone: the controller makes their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logs {
    /// What keywords stand for there: processors, memory in MiB, bytes of a page.
    pub keywords: (u64, u64, u64),
    /// The logs, in the order they are numbered in.
    pub list: Vec<Log>,
}

/// One log of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// The section of its job, from 0.
    pub section: u32,
    /// The clone of the section, from 0.
    pub clone: u32,
    /// The job's number in the run, from 0.
    pub job: u32,
    /// The number of its kind.
    pub kind: u8,
}

/// A piece of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPiece {
    /// The number of the log, from 0.
    pub log: u32,
    /// What follows the piece before it.
    pub bytes: Vec<u8>,
    /// Whether nothing more comes.
    pub is_last: bool,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// SHA-256 of the report before it.
    pub digest: Vec<u8>,
    /// The exit status that the run would have here.
    pub status: u8,
    /// What failed first, if anything did.
    pub cause: Option<String>,
}

impl End {
    /// What became of a host that sent this after its report. `was_stopped`: it was told to end its run.
    pub fn fate(&self, was_stopped: bool) -> Fate {
        match (&self.cause, self.status) {
            (Some(cause), 1..128) => Fate::Failed { cause: cause.clone() },
            _ if was_stopped => Fate::Stopped,
            (_, 128..) => Fate::Failed { cause: format!("stopped there by signal {}", self.status - 128) },
            (_, 0) => Fate::Complete,
            (_, status) => Fate::Failed { cause: format!("exit status {status}") },
        }
    }
}

/// Declares the messages, each with its number in frames.
macro_rules! messages {
    ($($(#[$doc:meta])+ $name:ident($payload:ty) = $number:literal;)+) => {
        /// A message.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Message {
            $($(#[$doc])+ $name($payload),)+
        }

        impl Message {
            /// Appends it to `out`, framed.
            pub fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Message::$name(payload) => write($number, payload, out),)+
                }
            }

            /// The message of this kind and payload; `None` if it is unknown.
            ///
            /// # Errors
            /// The payload is not one of that kind.
            pub fn read(kind: u8, payload: &[u8]) -> Result<Option<Message>, String> {
                match kind {
                    $($number => Ok(Some(Message::$name(read(kind, payload)?))),)+
                    // One of a later version.
                    _ => Ok(None),
                }
            }
        }
    };
}

messages! {
    /// Both: who is there.
    Hello(Hello) = 1;
    /// Controller: when it was sent, on its clock in nanoseconds.
    Ping(i64) = 2;
    /// Agent: the time of the ping, when it came and when this was sent, on the agent's clock.
    Pong((i64, i64, i64)) = 3;
    /// Controller: what to run.
    Prepare(Box<Prepare>) = 4;
    /// Agent: why it cannot be run.
    Problems(Vec<Told>) = 5;
    /// Agent: it can be run, and what this machine is.
    Facts(Box<HostFacts>) = 6;
    /// Controller: lay out, and go to the first start.
    Run(()) = 7;
    /// Agent: so many bytes were laid out so far.
    Laid(u64) = 8;
    /// Agent: the workers of this stage wait for its start.
    Ready(u32) = 9;
    /// Controller: start the stage at this time of the agent's clock.
    Start((u32, i64)) = 10;
    /// Agent: the stage was started, at this time of its clock.
    Started((u32, i64)) = 11;
    /// Agent: the time of the start had passed by so many nanoseconds.
    Late((u32, u64)) = 12;
    /// Agent: what was done so far.
    Progress(Progress) = 13;
    /// Agent: a line for people.
    Line(String) = 14;
    /// Agent: the report, encoded.
    Report(Vec<u8>) = 15;
    /// Agent: the run is over.
    End(End) = 16;
    /// Controller: end the run as by SIGTERM.
    Stop(()) = 17;
    /// Controller: the report has come, whole.
    Ack(()) = 18;
    /// Controller: the report was damaged; send it once more.
    Again(()) = 19;
    /// Controller: leave.
    Bye(()) = 20;
    /// Agent: the logs that the run will have. Before its facts.
    Logs(Box<Logs>) = 21;
    /// Agent: a piece of a log. No more bytes than there is credit for.
    Piece(LogPiece) = 22;
    /// Controller: so many more bytes of logs may be sent.
    Credit(u64) = 23;
    /// Controller: no more pieces of this log.
    EndLog(u32) = 24;
    /// Controller: how often a snapshot is wanted from now on, in milliseconds; 0 is never.
    Watch(u64) = 25;
    /// Agent: the report of what was measured so far, encoded. One that is not sent yet is replaced.
    Snapshot(Vec<u8>) = 26;
    /// Agent: how far a job's writes came. Controller, before what to run: the same of an earlier run.
    State(SavedState) = 27;
    /// Controller, before what to run: a trigger will stop the jobs, and this command is run then, once the report has come.
    Trigger(Option<Vec<u8>>) = 28;
    /// Controller: stop the jobs as a trigger does.
    Fire(()) = 29;
    /// Agent: the command of the trigger has ended; what is to be said of that, or nothing.
    Commanded(String) = 30;
    /// Agent: the paths of the files that its jobs read and write, as bytes. Before its facts.
    Files(Vec<Vec<u8>>) = 31;
}

fn write<P: Serialize>(number: u8, payload: &P, out: &mut Vec<u8>) {
    // Memory is written to memory, which cannot fail for these types.
    if let Ok(bytes) = postcard::to_allocvec(payload) {
        frame::write(number, &bytes, out);
    }
}

fn read<P: DeserializeOwned>(kind: u8, payload: &[u8]) -> Result<P, String> {
    // What follows the fields that are known is of a later version.
    let read = postcard::take_from_bytes(payload).map(|(payload, _)| payload);
    read.map_err(|why| format!("a message of kind {kind} cannot be read: {why}"))
}

/// Whether the two ends understand each other.
///
/// # Errors
/// Both versions, and what to do.
pub fn agree(here: &Hello, there: &Hello) -> Result<(), String> {
    if here.protocol.0 == there.protocol.0 {
        return Ok(());
    }
    Err(format!(
        "it has fiord {} (protocol {}), and this is fiord {} (protocol {}): use the same fiord there",
        there.fiord, there.protocol.0, here.fiord, here.protocol.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Inbox, PREFACE};

    #[test]
    fn messages_come_out_as_they_went_in() {
        let sent = [
            Message::Hello(Hello { protocol: PROTOCOL, fiord: "1.0".into(), ..Hello::default() }),
            Message::Start((3, -7)),
            Message::Problems(vec![Told { text: "j.fio:1:1: no".into(), is_unsafe: true }]),
            Message::Report(vec![1; 300_000]),
            Message::End(End { status: 1, cause: Some("a".into()), ..End::default() }),
            Message::Logs(Box::new(Logs {
                keywords: (4, 1024, 4096),
                list: vec![Log { kind: 7, ..Log::default() }],
            })),
            Message::Piece(LogPiece { log: 3, bytes: b"0, 1".to_vec(), is_last: true }),
            Message::Credit(1 << 40),
            Message::Watch(1000),
            Message::Snapshot(vec![1; 70_000]),
            Message::State(SavedState { job: b"w".to_vec(), number: 1, bytes: vec![3; 200] }),
            Message::Trigger(Some(b"reboot".to_vec())),
            Message::Bye(()),
        ];
        let mut bytes = PREFACE.to_vec();
        sent.iter().for_each(|message| message.write(&mut bytes));
        let mut inbox = Inbox::default();
        inbox.push(&bytes);
        for message in sent {
            let (kind, payload) = inbox.message().unwrap().unwrap();
            assert_eq!(Message::read(kind, &payload).unwrap(), Some(message));
        }
    }

    #[test]
    fn a_study_comes_out_as_it_went_in_and_a_part_of_it_does_not() {
        let report = StudyReport { status: 4, verdict: Some("FAIL".into()), ..StudyReport::default() };
        let bytes = report.encode();
        assert_eq!(StudyReport::decode(&bytes), Ok(report));
        assert!(StudyReport::decode(&bytes[..bytes.len() - 1]).is_err());
    }

    #[test]
    fn later_versions_are_read_as_far_as_they_are_known() {
        assert_eq!(Message::read(0x7f, b"x"), Ok(None));
        assert_eq!(Message::read(9, &[5, 1, 2, 3]), Ok(Some(Message::Ready(5))));
        assert!(Message::read(10, &[]).is_err());
        let here = Hello { protocol: (1, 0), ..Hello::default() };
        assert!(agree(&here, &Hello { protocol: (1, 7), ..here.clone() }).is_ok());
        assert!(agree(&here, &Hello { protocol: (2, 0), ..here.clone() }).is_err());
    }
}
