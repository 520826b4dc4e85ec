//! What is asked for of pods.
//!
//! Invariant: as typed: what is wrong with it is found where the manifest is made.

/// The pods that are asked for, and where; by their options' names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// How many; 0 makes none, and reaches those that are named.
    pub pods: u32,
    /// The class of their volumes; `None` is the cluster's default.
    pub storage_class: Option<String>,
    /// The size of each volume, as Kubernetes writes it (`20Gi`).
    pub volume_size: Option<String>,
    /// Whether the volume is a device without a file system.
    pub is_block: bool,
    /// `LABEL=VALUE`, separated by commas, that nodes have to have.
    pub nodes: Option<String>,
    /// `node` or `zone`: spread them evenly over these; `None` does so over nodes where it can.
    pub spread: Option<String>,
    /// The cluster, by kubectl's name for it; `None` is its current one.
    pub context: Option<String>,
    /// The namespace; `None` is that of the context.
    pub namespace: Option<String>,
    /// An image with fiord in its path; `None` is `fiord:VERSION`.
    pub image: Option<String>,
    /// Whether they are left at the end.
    pub keeps: bool,
}
