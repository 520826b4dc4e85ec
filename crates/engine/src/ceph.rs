//! What the engines over Ceph's libraries share: the names of cluster and client, and the usual causes of their errors.
//!
//! Invariant: nothing here opens a connection.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;

use fiord_options::table::engine::Ceph;
use fiord_options::value::Text;
use fiord_plan::{EngineTests, Need, Tested};
use fiord_sys::library::rados::ClusterName;

/// What the examples of these engines need.
pub(crate) const CLUSTER: &[Need] = &[Need {
    what: "a Ceph cluster with a pool named rbd, and its configuration file (package ceph-common)",
    check: "timeout 20 rbd ls rbd",
}];

const TESTS: &str = "tests/servers/cases/ceph.rs";

/// The tests of both engines, on a cluster in memory.
pub(crate) const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "data_are_what_cephs_programs_write_and_read"),
    counts: Tested::By(TESTS, "counts_are_those_of_fio"),
    short: Tested::Never("an answer is whole, or an error"),
    interrupted: Tested::By(TESTS, "a_process_that_is_stopped_and_continued_loses_no_io"),
    error: Tested::By(TESTS, "a_pool_that_is_removed_ends_the_job_with_its_error"),
    gone: Tested::By(TESTS, "a_pool_that_is_removed_ends_the_job_with_its_error"),
    stuck: Tested::By(TESTS, "a_cluster_that_has_stopped_does_not_hold_up_the_end"),
    given_back: Tested::By(TESTS, "jobs_give_back_what_they_took"),
};

/// What the job says of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterSettings {
    /// Which cluster, as whom.
    pub name: ClusterName,
    /// The pool.
    pub pool: Option<CString>,
    /// Poll for completions.
    pub busy: bool,
}

impl ClusterSettings {
    /// Those of a job's options.
    pub(crate) fn of(options: &Ceph) -> ClusterSettings {
        let cluster = options.clustername.as_ref().and_then(text);
        let client = options.clientname.as_ref().and_then(text);
        // With a cluster's name, the library takes the client's in full.
        let client = match (&cluster, client) {
            (Some(_), None) => Some(c"client.admin".to_owned()),
            (Some(_), Some(name)) if !name.as_bytes().contains(&b'.') => {
                bytes(&[b"client.", name.as_bytes()].concat())
            }
            (_, client) => client,
        };
        ClusterSettings {
            name: ClusterName { cluster, client, configuration: options.conf.as_ref().and_then(text) },
            pool: options.pool.as_ref().and_then(text),
            busy: options.busy_poll,
        }
    }

    /// The usual cause of an error of librados, and what to do; empty if nothing is known of it.
    pub(crate) fn hint(&self, call: &str, errno: i32) -> String {
        let client = self.name.client.as_ref().map_or_else(|| "client.admin".into(), shown);
        match (call, errno) {
            ("rados_create", _) => format!("{client} is not a client name; set clientname="),
            ("rados_conf_read_file", libc::ENOENT) => {
                "there is no configuration file; set conf= or CEPH_CONF, or install it as /etc/ceph/ceph.conf"
                    .to_string()
            }
            ("rados_conf_read_file", _) => "the configuration file is malformed".to_string(),
            ("rados_connect", libc::ETIMEDOUT) => {
                "no monitor answered; see mon_host in the configuration, and whether ceph-mon runs"
                    .to_string()
            }
            ("rados_connect", libc::EACCES | libc::EPERM) => {
                format!("the cluster refuses {client}; set clientname=, or install its keyring")
            }
            ("rados_connect", libc::ENOENT) => {
                format!("the configuration names no monitor (mon_host), or there is no keyring of {client}")
            }
            ("rados_ioctx_create", libc::ENOENT) => {
                let pool = self.pool.as_ref().map_or_else(String::new, shown);
                format!("there is no pool {pool}; set pool= to one of `rados lspools`")
            }
            _ => String::new(),
        }
    }
}

/// The name, for messages.
pub(crate) fn shown(name: &CString) -> String {
    fiord_options::secret::in_urls_of(&name.to_string_lossy())
}

/// A text as libraries take it. One with a zero byte, which no option can have, counts as absent.
pub(crate) fn text(text: &Text) -> Option<CString> {
    let Text(text) = text;
    name(text)
}

/// A target's name as libraries take it.
pub(crate) fn name(text: &OsStr) -> Option<CString> {
    bytes(text.as_bytes())
}

fn bytes(text: &[u8]) -> Option<CString> {
    CString::new(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(cluster: Option<&str>, client: Option<&str>) -> Option<String> {
        let text = |text: &str| Text(text.into());
        let options =
            Ceph { clustername: cluster.map(text), clientname: client.map(text), ..Ceph::default() };
        ClusterSettings::of(&options).name.client.as_ref().map(shown)
    }

    #[test]
    fn a_client_of_a_named_cluster_has_its_type() {
        assert_eq!(settings(None, Some("admin")).as_deref(), Some("admin"));
        assert_eq!(settings(Some("ceph"), Some("admin")).as_deref(), Some("client.admin"));
        assert_eq!(settings(Some("ceph"), Some("mds.a")).as_deref(), Some("mds.a"));
        assert_eq!(settings(Some("ceph"), None).as_deref(), Some("client.admin"));
        assert_eq!(settings(None, None), None);
    }
}
