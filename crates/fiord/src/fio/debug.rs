//! `--debug`: what is printed at the start, and where the lines of the run go.
//!
//! Invariant: lines are as fio's where a program could read them, and go where the report goes.

use std::io;

use fiord_options::cli::Parsed;
use fiord_options::value::{
    DebugChannel, DebugSetting, DebugSettings, Reading, SteadyCriterion, SteadyLimit, SteadyMeasure, Value,
};
use fiord_options::{Globals, Section, Setting, job};
use fiord_report::path::text;
use fiord_sys::channel::{Sender, channel};
use fiord_sys::spawn;
use fiord_worker::DebugLog;

use crate::output::Output;

/// Enough for writing lines.
const STACK_BYTES: usize = 256 << 10;

/// The list of channels, if it is requested.
pub(super) fn help(settings: &DebugSettings) -> Option<String> {
    settings.0.contains(&DebugSetting::Help).then(|| {
        let channels: Vec<&str> = DebugChannel::ALL.iter().map(|channel| channel.word()).collect();
        format!("fio: dumping debug options:{},all\n", channels.join(","))
    })
}

/// Prints which channels are on, the profile, and the options as they were read.
pub(super) fn announce(settings: &DebugSettings, parsed: &Parsed) {
    let mut output = Output::stdout();
    for setting in &settings.0 {
        output.write(&match setting {
            DebugSetting::Help => continue,
            DebugSetting::All => "fio: set all debug options\n".to_string(),
            DebugSetting::Channel(channel) => format!("fio: set debug option {}\n", channel.word()),
            DebugSetting::OnlyJob(number) => format!("fio: set debug jobno {number}\n"),
        });
    }
    let channels = channels(settings);
    if ![DebugChannel::Parse, DebugChannel::Profile].iter().any(|channel| channels.contains(channel)) {
        return;
    }
    let log = DebugLog::new(channels, None, |line| Output::stdout().write(line));
    let value = |setting: &Setting| setting.shown_value().map_or("(null)".to_string(), text);
    if let Some(profile) = &parsed.profile {
        log.line(DebugChannel::Profile, format_args!("loading profile '{}'", value(profile)));
    }
    let mut before = &Globals::default();
    for Section { global, own, .. } in &parsed.sections {
        // Each is read once, as in fio.
        for setting in global.since(before).unwrap_or(global).iter().chain(own) {
            let option = format_args!("handle_option={}, ptr={}", setting.spec.name, value(setting));
            log.line(DebugChannel::Parse, option);
            let threshold = steady_threshold(setting);
            threshold.iter().for_each(|text| log.line(DebugChannel::Parse, format_args!("{text}")));
        }
        before = global;
    }
}

/// What fio says of the limit of a steady state.
fn steady_threshold(setting: &Setting) -> Option<String> {
    if setting.spec != job::Steady::steadystate {
        return None;
    }
    let criterion = SteadyCriterion::parse(setting.text()?, &mut Reading::default()).ok()?;
    Some(match (criterion.limit, criterion.measure) {
        (SteadyLimit::Percent(percent), _) => format!("set steady state threshold to {percent:.6}%"),
        (SteadyLimit::Absolute(ios), SteadyMeasure::Iops) => {
            format!("set steady state IOPS threshold to {ios:.6}")
        }
        (SteadyLimit::Absolute(bytes), SteadyMeasure::Bandwidth) => {
            format!("set steady state BW threshold to {bytes:.0}")
        }
        (SteadyLimit::Absolute(ns), SteadyMeasure::Latency) => {
            format!("set steady state latency threshold to {ns:.0}")
        }
    })
}

/// The channels that are printed.
fn channels(settings: &DebugSettings) -> Vec<DebugChannel> {
    DebugChannel::ALL.iter().copied().filter(|channel| settings.has(*channel)).collect()
}

/// Where the lines of a run go. A separate thread writes them, because workers have only their own files open. The worker
/// waits until its line is written, so that the report comes after all of them.
///
/// # Errors
/// The output cannot be written by a second thread, or that cannot be started.
pub(super) fn log(settings: &DebugSettings, output: &Output) -> io::Result<DebugLog> {
    let mut output = output.duplicate()?;
    let (sender, lines) = channel::<(String, Sender<()>)>();
    spawn::spawn("fiord-debug", STACK_BYTES, move || {
        while let Ok((line, written)) = lines.recv() {
            output.write(&line);
            drop(written);
        }
    })?;
    Ok(DebugLog::new(channels(settings), settings.only_job(), move |line| {
        let (written, is_written) = channel();
        let _ = sender.send((line.to_string(), written));
        // Ends when the other side is dropped.
        let _ = is_written.recv();
    }))
}
