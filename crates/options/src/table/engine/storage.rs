//! Private options of the engines that reach storage through a library of its own.
//!
//! Invariant: all sets are `unbuilt`, since none of these engines is built in.

use crate::table::set::options;
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// Options of `dfs`.
    pub struct Dfs, scope Scope::Engine(&[EngineName::Dfs]), unbuilt;

    "Engine dfs" {
        /// Name or identifier of the pool.
        pool: Text;
        /// Name or identifier of the container.
        cont: Text;
        /// Size of a chunk.
        chunk_size: Bytes = 0;
        /// Class of the objects.
        object_class: Text;
        /// Replicas of the pool's service.
        svcl: Text;
    }
}

options! {
    /// Options of `libhdfs`.
    pub struct Hdfs, scope Scope::Engine(&[EngineName::Libhdfs]), unbuilt;

    "Engine libhdfs" {
        /// Host of the name node.
        namenode | hostname: Text;
        /// Port of the name node.
        port: u32, in 1..=65535;
        /// Directory to work in.
        hdfsdirectory: Text;
        /// Size of a chunk.
        chunk_size: Bytes = 1048576;
        /// Share one connection between workers.
        single_instance: bool = 1, in 0..=1;
        /// Read from a local replica.
        hdfs_use_direct: bool = 0, in 0..=1;
    }
}

options! {
    /// Options of `http`.
    pub struct Http, scope Scope::Engine(&[EngineName::Http]), unbuilt;

    "Engine http" {
        /// Whether to use TLS.
        https: Text = "off";
        /// Host to connect to.
        http_host: Text = "localhost";
        /// User name.
        http_user: Text;
        /// Password.
        http_pass: Text;
        /// Interface: webdav, s3 or swift.
        http_mode: Text = "webdav";
        /// Region of S3.
        http_s3_region: Text = "us-east-1";
        /// Secret key of S3.
        http_s3_key: Text;
        /// Key identifier of S3.
        http_s3_keyid: Text;
        /// Session token of S3.
        http_s3_security_token: Text;
        /// Key that the S3 server encrypts objects with.
        http_s3_sse_customer_key: Text;
        /// Algorithm that the S3 server encrypts objects with.
        http_s3_sse_customer_algorithm: Text = "AES256";
        /// Whether a block is an object or a range of one.
        http_object_mode: Text = "block";
        /// Storage class of S3.
        http_s3_storage_class: Text = "STANDARD";
        /// Token of Swift.
        http_swift_auth_token: Text;
        /// Detail of messages about requests.
        http_verbose: u32 = 0;
    }
}

options! {
    /// Options of `libcufile`.
    pub struct Cufile, scope Scope::Engine(&[EngineName::Libcufile]), unbuilt;

    "Engine libcufile" {
        /// GPUs that workers take turns on, separated by colons.
        gpu_dev_ids: Text = 0;
        /// Way between files and GPUs.
        cuda_io: Text = "cufile";
    }
}

options! {
    /// Options of `libblkio`.
    pub struct Libblkio, scope Scope::Engine(&[EngineName::Libblkio]), unbuilt;

    "Engine libblkio" {
        /// Driver of the library.
        libblkio_driver: Text;
        /// Path the driver opens.
        libblkio_path: Text;
        /// Properties set before connecting.
        libblkio_pre_connect_props: Text;
        /// Number of entries of the driver's queue.
        libblkio_num_entries: u32;
        /// Size of the driver's queue.
        libblkio_queue_size: u32;
        /// Properties set before starting.
        libblkio_pre_start_props: Text;
        /// Poll for completions.
        hipri: Flag;
        /// Use vectored requests.
        libblkio_vectored: Flag;
        /// Trim by writing zeroes.
        libblkio_write_zeroes_on_trim: Flag;
        /// How completions are waited for.
        libblkio_wait_mode: Text = "block";
        /// Request completion events even if no thread waits for them.
        libblkio_force_enable_completion_eventfd: Flag;
    }
}

options! {
    /// Options of `nbd`.
    pub struct Nbd, scope Scope::Engine(&[EngineName::Nbd]), unbuilt;

    "Engine nbd" {
        /// Address of the server.
        uri: Text;
    }
}

options! {
    /// Options of `nfs`.
    pub struct Nfs, scope Scope::Engine(&[EngineName::Nfs]), unbuilt;

    "Engine nfs" {
        /// Server and path, as a URL of libnfs.
        nfs_url: Text;
    }
}

options! {
    /// Options of `xnvme`.
    pub struct Xnvme, scope Scope::Engine(&[EngineName::Xnvme]), unbuilt;

    "Engine xnvme" {
        /// Poll for completions.
        hipri: Flag;
        /// Let a kernel thread submit.
        sqthread_poll: Flag;
        /// Backend of the library.
        xnvme_be: Text;
        /// Memory backend of the library.
        xnvme_mem: Text;
        /// Interface for asynchronous commands.
        xnvme_async: Text;
        /// Interface for synchronous commands.
        xnvme_sync: Text;
        /// Interface for administrative commands.
        xnvme_admin: Text;
        /// Namespace of the device.
        xnvme_dev_nsid: u32;
        /// NQN of the subsystem.
        xnvme_dev_subnqn: Text;
        /// Use vectored commands.
        xnvme_iovec: Flag;
    }
}
