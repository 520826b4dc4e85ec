//! Private options of the engines that reach storage through a library of its own.
//!
//! Invariant: all dormant, since none of these engines is built in.

use crate::spec::Scope;
use crate::table::options;
use crate::value::*;

options! {
    /// Options of `rados` and `rbd`.
    pub struct Ceph, scope Scope::Engine(&["rados", "rbd"]);

    "Engines rados and rbd" {
        /// Name of the cluster.
        #[dormant("ioengine")]
        clustername: Text;
        /// Name of the block device.
        #[dormant("ioengine")]
        rbdname: Text;
        /// Name of the pool.
        #[dormant("ioengine")]
        pool: Text;
        /// Name of the client.
        #[dormant("ioengine")]
        clientname: Text;
        /// Configuration file of the cluster.
        #[dormant("ioengine")]
        conf: Text;
        /// Poll for completions instead of sleeping.
        #[dormant("ioengine")]
        busy_poll: bool = 0, in 0..=1;
        /// Create the objects at the start.
        #[dormant("ioengine")]
        touch_objects: bool = 1, in 0..=1;
    }
}

options! {
    /// Options of `rbd` alone.
    pub struct Rbd, scope Scope::Engine(&["rbd"]);

    "Engine rbd" {
        /// Format of the image's encryption.
        #[dormant("ioengine")]
        rbd_encryption_format: Text;
        /// Passphrase of the image's encryption.
        #[dormant("ioengine")]
        rbd_encryption_passphrase: Text;
    }
}

options! {
    /// Options of `dfs`.
    pub struct Dfs, scope Scope::Engine(&["dfs"]);

    "Engine dfs" {
        /// Name or identifier of the pool.
        #[dormant("ioengine")]
        pool: Text;
        /// Name or identifier of the container.
        #[dormant("ioengine")]
        cont: Text;
        /// Size of a chunk.
        #[dormant("ioengine")]
        chunk_size: Bytes = 0;
        /// Class of the objects.
        #[dormant("ioengine")]
        object_class: Text;
        /// Replicas of the pool's service.
        #[dormant("ioengine")]
        svcl: Text;
    }
}

options! {
    /// Options of `gfapi` and `gfapi_async`.
    pub struct Gluster, scope Scope::Engine(&["gfapi", "gfapi_async"]);

    "Engines gfapi and gfapi_async" {
        /// Name of the volume.
        #[dormant("ioengine")]
        volume: Text;
        /// Host of the brick to connect to.
        #[dormant("ioengine")]
        brick: Text;
        /// Share one connection between workers.
        #[dormant("ioengine")]
        single_instance as "single-instance": bool = 0, in 0..=1;
    }
}

options! {
    /// Options of `libhdfs`.
    pub struct Hdfs, scope Scope::Engine(&["libhdfs"]);

    "Engine libhdfs" {
        /// Host of the name node.
        #[dormant("ioengine")]
        namenode | hostname: Text;
        /// Port of the name node.
        #[dormant("ioengine")]
        port: u32, in 1..=65535;
        /// Directory to work in.
        #[dormant("ioengine")]
        hdfsdirectory: Text;
        /// Size of a chunk.
        #[dormant("ioengine")]
        chunk_size: Bytes = 1048576;
        /// Share one connection between workers.
        #[dormant("ioengine")]
        single_instance: bool = 1, in 0..=1;
        /// Read from a local replica.
        #[dormant("ioengine")]
        hdfs_use_direct: bool = 0, in 0..=1;
    }
}

options! {
    /// Options of `http`.
    pub struct Http, scope Scope::Engine(&["http"]);

    "Engine http" {
        /// Whether to use TLS.
        #[dormant("ioengine")]
        https: Text = "off";
        /// Host to connect to.
        #[dormant("ioengine")]
        http_host: Text = "localhost";
        /// User name.
        #[dormant("ioengine")]
        http_user: Text;
        /// Password.
        #[dormant("ioengine")]
        http_pass: Text;
        /// Interface: webdav, s3 or swift.
        #[dormant("ioengine")]
        http_mode: Text = "webdav";
        /// Region of S3.
        #[dormant("ioengine")]
        http_s3_region: Text = "us-east-1";
        /// Secret key of S3.
        #[dormant("ioengine")]
        http_s3_key: Text;
        /// Key identifier of S3.
        #[dormant("ioengine")]
        http_s3_keyid: Text;
        /// Session token of S3.
        #[dormant("ioengine")]
        http_s3_security_token: Text;
        /// Key that the S3 server encrypts objects with.
        #[dormant("ioengine")]
        http_s3_sse_customer_key: Text;
        /// Algorithm that the S3 server encrypts objects with.
        #[dormant("ioengine")]
        http_s3_sse_customer_algorithm: Text = "AES256";
        /// Whether a block is an object or a range of one.
        #[dormant("ioengine")]
        http_object_mode: Text = "block";
        /// Storage class of S3.
        #[dormant("ioengine")]
        http_s3_storage_class: Text = "STANDARD";
        /// Token of Swift.
        #[dormant("ioengine")]
        http_swift_auth_token: Text;
        /// Detail of messages about requests.
        #[dormant("ioengine")]
        http_verbose: u32 = 0;
    }
}

options! {
    /// Options of `libcufile`.
    pub struct Cufile, scope Scope::Engine(&["libcufile"]);

    "Engine libcufile" {
        /// GPUs that workers take turns on, separated by colons.
        #[dormant("ioengine")]
        gpu_dev_ids: Text = 0;
        /// Way between files and GPUs.
        #[dormant("ioengine")]
        cuda_io: Text = "cufile";
    }
}

options! {
    /// Options of `libblkio`.
    pub struct Libblkio, scope Scope::Engine(&["libblkio"]);

    "Engine libblkio" {
        /// Driver of the library.
        #[dormant("ioengine")]
        libblkio_driver: Text;
        /// Path the driver opens.
        #[dormant("ioengine")]
        libblkio_path: Text;
        /// Properties set before connecting.
        #[dormant("ioengine")]
        libblkio_pre_connect_props: Text;
        /// Number of entries of the driver's queue.
        #[dormant("ioengine")]
        libblkio_num_entries: u32;
        /// Size of the driver's queue.
        #[dormant("ioengine")]
        libblkio_queue_size: u32;
        /// Properties set before starting.
        #[dormant("ioengine")]
        libblkio_pre_start_props: Text;
        /// Poll for completions.
        #[dormant("ioengine")]
        hipri: Flag;
        /// Use vectored requests.
        #[dormant("ioengine")]
        libblkio_vectored: Flag;
        /// Trim by writing zeroes.
        #[dormant("ioengine")]
        libblkio_write_zeroes_on_trim: Flag;
        /// How completions are waited for.
        #[dormant("ioengine")]
        libblkio_wait_mode: Text = "block";
        /// Ask for completions even if nobody waits.
        #[dormant("ioengine")]
        libblkio_force_enable_completion_eventfd: Flag;
    }
}

options! {
    /// Options of `nbd`.
    pub struct Nbd, scope Scope::Engine(&["nbd"]);

    "Engine nbd" {
        /// Address of the server.
        #[dormant("ioengine")]
        uri: Text;
    }
}

options! {
    /// Options of `nfs`.
    pub struct Nfs, scope Scope::Engine(&["nfs"]);

    "Engine nfs" {
        /// Server and path, as a URL of libnfs.
        #[dormant("ioengine")]
        nfs_url: Text;
    }
}

options! {
    /// Options of `xnvme`.
    pub struct Xnvme, scope Scope::Engine(&["xnvme"]);

    "Engine xnvme" {
        /// Poll for completions.
        #[dormant("ioengine")]
        hipri: Flag;
        /// Let a kernel thread submit.
        #[dormant("ioengine")]
        sqthread_poll: Flag;
        /// Backend of the library.
        #[dormant("ioengine")]
        xnvme_be: Text;
        /// Memory backend of the library.
        #[dormant("ioengine")]
        xnvme_mem: Text;
        /// Interface for asynchronous commands.
        #[dormant("ioengine")]
        xnvme_async: Text;
        /// Interface for synchronous commands.
        #[dormant("ioengine")]
        xnvme_sync: Text;
        /// Interface for administrative commands.
        #[dormant("ioengine")]
        xnvme_admin: Text;
        /// Namespace of the device.
        #[dormant("ioengine")]
        xnvme_dev_nsid: u32;
        /// NQN of the subsystem.
        #[dormant("ioengine")]
        xnvme_dev_subnqn: Text;
        /// Use vectored commands.
        #[dormant("ioengine")]
        xnvme_iovec: Flag;
    }
}
