//! The options of hosts that are pods, which runs and studies have alike.
//!
//! Invariant: nothing is made here.

use fiord_options::program::ProgramOptions;
use fiord_options::value::Text;
use fiord_remote::kube::{self, Pods, Settings};
use fiord_report::path::shown;
use fiord_sys::signal;

use crate::output::say;
use crate::status;

/// How pods are made, by `--via=kube`.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub(crate) struct PodOptions {
    /// By kube: make N pods for this, each with a volume
    /// (docs/hosts.md, "Pods")
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    pods: u32,
    /// The storage class of their volumes
    #[arg(long, value_name = "CLASS")]
    storage_class: Option<String>,
    /// The size of each volume, as in 20Gi
    #[arg(long, value_name = "SIZE")]
    volume_size: Option<String>,
    /// Volumes are devices, /dev/data, not directories, /data
    #[arg(long)]
    block_volume: bool,
    /// Start pods on nodes with this label, as in disk=nvme
    #[arg(long, value_name = "LABEL=VALUE")]
    nodes: Option<String>,
    /// Spread pods evenly over each node or zone
    #[arg(long, value_name = "WHAT")]
    spread: Option<String>,
    /// The cluster, as kubectl calls its context
    #[arg(long)]
    context: Option<String>,
    /// The namespace of the pods
    #[arg(long)]
    namespace: Option<String>,
    /// The image of the pods, with fiord in its path
    #[arg(long)]
    image: Option<String>,
    /// Leave the pods there at the end
    #[arg(long)]
    keep_pods: bool,
    /// Print what kubectl would be given, and do nothing
    #[arg(long)]
    print_manifest: bool,
}

impl PodOptions {
    /// What they ask for.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            pods: self.pods,
            storage_class: self.storage_class.clone(),
            volume_size: self.volume_size.clone(),
            is_block: self.block_volume,
            nodes: self.nodes.clone(),
            spread: self.spread.clone(),
            context: self.context.clone(),
            namespace: self.namespace.clone(),
            image: self.image.clone(),
            keeps: self.keep_pods,
        }
    }

    /// What kubectl would be given, if only that is asked for.
    ///
    /// # Errors
    /// What is wrong with the options.
    pub(crate) fn manifest(&self) -> Result<Option<String>, String> {
        self.print_manifest.then(|| self.settings().manifest()).transpose()
    }
}

/// What the options of a run ask for.
pub(crate) fn of_run(options: &ProgramOptions) -> Settings {
    let text = |option: &Option<Text>| option.as_ref().map(|text| shown(&text.0));
    Settings {
        pods: options.pods,
        storage_class: text(&options.storage_class),
        volume_size: text(&options.volume_size),
        is_block: options.block_volume.0,
        nodes: text(&options.nodes),
        spread: text(&options.spread),
        context: text(&options.context),
        namespace: text(&options.namespace),
        image: text(&options.image),
        keeps: options.keep_pods.0,
    }
}

/// Makes the pods, and says meanwhile what keeps them from running.
///
/// # Errors
/// They cannot be had; nothing is left.
pub(crate) fn start(settings: &Settings) -> Result<Pods, String> {
    Pods::start(settings, say)
}

/// What is wrong with these options beside `--via` and `--hosts`, if they are given.
pub(crate) fn misplaced(settings: &Settings, via: &str, names_hosts: bool) -> Option<&'static str> {
    let is_by_kube = via == kube::VIA;
    match settings.pods {
        _ if settings.is_given() && !is_by_kube && !names_hosts => {
            Some("--pods and its kin are of --via=kube: give that as well")
        }
        0 if is_by_kube && !names_hosts => {
            Some("--via=kube needs pods: give --pods=N and --volume-size, or name those that run by --hosts")
        }
        1.. if names_hosts => Some("--pods makes the hosts, and --hosts names others: leave out one"),
        _ => None,
    }
}

/// The exit status where hosts could not be had: that of a signal, if one is why.
pub(crate) fn status_without() -> u8 {
    signal::stop_requested().map_or(status::FAILED, status::of_signal)
}
