//! Private options of the engines that reach servers through C libraries.
//!
//! Invariant: one struct per engine, named after it; options that engines share are a struct named after their subject.

use crate::table::set::options;
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// Options of `rados` and `rbd`.
    pub struct Ceph, scope Scope::Engine(&[EngineName::Rados, EngineName::Rbd]);

    "Engines rados and rbd" {
        /// Name of the cluster; `ceph` by default.
        clustername: Text;
        /// Name of the pool.
        pool: Text;
        /// Name of the client, `admin` by default: without its type (`client.`), or with it if `clustername` is given.
        clientname: Text;
        /// Configuration file of the cluster; `/etc/ceph/ceph.conf`, or the file that `CEPH_CONF` names, by default.
        conf: Text;
        /// Poll for completions instead of sleeping.
        busy_poll: bool = 0, in 0..=1;
    }
}

options! {
    /// Options of `rados` alone.
    pub struct Rados, scope Scope::Engine(&[EngineName::Rados]);

    "Engine rados" {
        /// Create the objects when they are opened, unless they exist.
        touch_objects: bool = 1, in 0..=1;
    }
}

options! {
    /// Options of `rbd` alone.
    pub struct Rbd, scope Scope::Engine(&[EngineName::Rbd]);

    "Engine rbd" {
        /// Name of the image.
        rbdname: Text;
        /// Format of the image's encryption: `luks1`, `luks2`, or `luks` for the one that the image has.
        rbd_encryption_format: Text;
        /// Passphrase of the image's encryption.
        #[secret(masked)]
        rbd_encryption_passphrase: Text;
    }
}

options! {
    /// Options of `gfapi` and `gfapi_async`.
    pub struct Gluster, scope Scope::Engine(&[EngineName::Gfapi, EngineName::GfapiAsync]);

    "Engines gfapi and gfapi_async" {
        /// Name of the volume.
        volume: Text;
        /// A host that manages the volume: one with a brick of it.
        brick: Text;
        /// Share one connection between workers.
        single_instance as "single-instance": bool = 0, in 0..=1;
    }
}
