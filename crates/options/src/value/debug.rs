//! What `--debug` prints: channels, and the one job whose lines are wanted.
//!
//! Invariant: the channels are those of fio, by its names and in its order.

use super::choice::{unindented, unknown_word};
use super::contract::{Choice, Reading, Value};
use super::kind::ValueKind;

/// Declares the channels with their names and meanings.
macro_rules! channels {
    ($(#[doc = $help:literal] $variant:ident = $word:literal,)*) => {
        /// A subject of debug messages.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum DebugChannel {
            $(#[doc = $help] $variant,)*
        }

        impl DebugChannel {
            /// All of them, in fio's order.
            pub const ALL: &'static [DebugChannel] = &[$(DebugChannel::$variant,)*];

            /// Its name.
            pub fn word(self) -> &'static str {
                match self {
                    $(DebugChannel::$variant => $word,)*
                }
            }
        }

        const CHANNELS: &[Choice] = &[
            $(Choice { word: $word, help: unindented($help) },)*
            Choice { word: "all", help: "All of these." },
            Choice { word: "help", help: "Lists the channels; so does `?`." },
        ];
    };
}

channels! {
    /// Threads and the states of jobs.
    Process = "process",
    /// Files opened and closed.
    File = "file",
    /// Each I/O: generated, issued, completed.
    Io = "io",
    /// Buffers.
    Mem = "mem",
    /// Each I/O of a binary trace as it is read for a replay, with its pause in microseconds.
    Blktrace = "blktrace",
    /// Blocks that are verified.
    Verify = "verify",
    /// Random offsets.
    Random = "random",
    /// Options as they are read.
    Parse = "parse",
    /// The kernel's counters of the devices below the files, at the start and at the end.
    Diskutil = "diskutil",
    /// With a number, such as `job:2`, prints only the messages of this job, counted from 1.
    Job = "job",
    /// Waiting at the start, for workers and of workers.
    Mutex = "mutex",
    /// Profiles as they are loaded.
    Profile = "profile",
    /// The clock of each job, and the rate of the processor's counter.
    Time = "time",
    /// Networks. No lines: nothing goes through a network.
    Net = "net",
    /// I/Os handed to the threads of `io_submit_mode=offload`, and their results.
    Rate = "rate",
    /// Blocks of logs as they are compressed.
    Compress = "compress",
    /// Each measurement of the search for a steady state, and what it is judged by.
    Steadystate = "steadystate",
    /// The helper thread. No lines: there is none, the main thread takes the samples.
    Helperthread = "helperthread",
    /// Zones of a zoned device that are reset or finished.
    Zbd = "zbd",
}

/// One setting of `--debug`, of which several are separated by commas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DebugSetting {
    /// The list of channels is printed instead of a run.
    Help,
    /// All channels.
    All,
    /// One channel.
    Channel(DebugChannel),
    /// Of the jobs' own lines only those of this job, counted from 1.
    OnlyJob(u32),
}

/// What `--debug` asks for, in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugSettings(pub Vec<DebugSetting>);

impl DebugSettings {
    /// Whether the lines of a channel are printed.
    pub fn has(&self, channel: DebugChannel) -> bool {
        self.0.iter().any(|setting| [DebugSetting::All, DebugSetting::Channel(channel)].contains(setting))
    }

    /// The one job whose lines are printed, from 1.
    pub fn only_job(&self) -> Option<u32> {
        let mut jobs = self.0.iter().filter_map(|setting| match setting {
            DebugSetting::OnlyJob(number) => Some(*number),
            _ => None,
        });
        jobs.next_back()
    }
}

impl Value for DebugSettings {
    const KIND: ValueKind = ValueKind::Words;
    const CHOICES: &'static [Choice] = CHANNELS;

    fn parse(text: &str, reading: &mut Reading) -> Result<DebugSettings, String> {
        let setting = |word: &str| {
            if let Some(number) = word.strip_prefix("job:") {
                let number = number.parse().ok().filter(|number| *number > 0);
                return number
                    .map(DebugSetting::OnlyJob)
                    .ok_or_else(|| format!("{word:?}: jobs are counted from 1"));
            }
            match word {
                "all" => Ok(DebugSetting::All),
                "help" | "?" => Ok(DebugSetting::Help),
                "job" => Err("job needs a number, as job:1".to_string()),
                word => match DebugChannel::ALL.iter().find(|channel| channel.word() == word) {
                    Some(channel) => Ok(DebugSetting::Channel(*channel)),
                    None => Err(unknown_word(word, CHANNELS, reading)),
                },
            }
        };
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        words.map(setting).collect::<Result<Vec<DebugSetting>, String>>().map(DebugSettings)
    }

    fn print(&self) -> String {
        let word = |setting: &DebugSetting| match setting {
            DebugSetting::Help => "help".to_string(),
            DebugSetting::All => "all".to_string(),
            DebugSetting::Channel(channel) => channel.word().to_string(),
            DebugSetting::OnlyJob(number) => format!("job:{number}"),
        };
        self.0.iter().map(word).collect::<Vec<String>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_named_and_a_job_has_a_number() {
        let parse = |text| DebugSettings::parse(text, &mut Reading::default());
        let settings = parse("io,random,job:2").unwrap();
        assert!(settings.has(DebugChannel::Io) && !settings.has(DebugChannel::File));
        assert_eq!((settings.only_job(), settings.print().as_str()), (Some(2), "io,random,job:2"));
        assert!(parse("all").unwrap().has(DebugChannel::Zbd));
        assert_eq!(parse("?").unwrap().0, [DebugSetting::Help]);
        for wrong in ["nope", "job", "job:0", "job:x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
