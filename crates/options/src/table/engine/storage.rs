//! Private options of the engines that reach storage through a library of its own.
//!
//! Invariant: a set is `unbuilt` as long as its engine is not built in.

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
    pub struct Http, scope Scope::Engine(&[EngineName::Http]);

    "Engine http" {
        /// Whether to use TLS; with `insecure`, whatever certificate the server has.
        https: Https = "off";
        /// Host to connect to, or host and port.
        ///
        /// With S3, a bucket is either part of this name or the beginning of `filename`.
        ///
        /// Example: `http_host=localhost:9000`.
        http_host: Utf8Text = "localhost";
        /// User name for WebDAV.
        http_user: Utf8Text;
        /// Password for WebDAV.
        #[secret(masked)]
        http_pass: Utf8Text;
        /// Interface of the server.
        http_mode: HttpMode = "webdav";
        /// Region of S3, which is part of each signature.
        http_s3_region: Utf8Text = "us-east-1";
        /// Secret key of S3.
        #[secret(masked)]
        http_s3_key: Utf8Text;
        /// Identifier of the key of S3.
        http_s3_keyid: Utf8Text;
        /// Token of a session of S3.
        #[secret(masked)]
        http_s3_security_token: Utf8Text;
        /// Key that the S3 server encrypts objects with and does not keep: 32 characters, or 32 bytes in base 64.
        #[secret(masked)]
        http_s3_sse_customer_key: Utf8Text;
        /// Algorithm that the S3 server encrypts objects with.
        http_s3_sse_customer_algorithm: Utf8Text = "AES256";
        /// Whether each `block` of the file is an object, or the file is one, of which reads request a `range`.
        /// The start and end of a block are added to the name of its object. Writes write whole objects either way.
        http_object_mode: HttpObjectMode = "block";
        /// Storage class of objects written to S3.
        http_s3_storage_class: Utf8Text = "STANDARD";
        /// Token of Swift, as `swift auth` prints it.
        #[secret(masked)]
        http_swift_auth_token: Utf8Text;
        /// Detail of messages about requests.
        #[ignored("requests are not printed: the server's log has them, and --debug=io prints each I/O")]
        http_verbose: u32 = 0;
    }
}

options! {
    /// Options of `libcufile`.
    pub struct Cufile, scope Scope::Engine(&[EngineName::Libcufile]);

    "Engine libcufile" {
        /// GPUs that workers take turns on: numbers as `nvidia-smi -L` lists them, separated by colons.
        gpu_dev_ids: ColonList = 0;
        /// Way between files and GPUs.
        cuda_io: CudaIo = "cufile";
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
    pub struct Nbd, scope Scope::Engine(&[EngineName::Nbd]);

    "Engine nbd" {
        /// Address of the server, and the name of its export.
        ///
        /// `nbd://HOST:PORT/EXPORT` over TCP, `nbd+unix:///EXPORT?socket=PATH` over a socket in the file system, and
        /// `nbds://` or `nbds+unix://` with TLS, for which the server's certificate is verified; with
        /// `tls-certificates=DIRECTORY` by `ca-cert.pem` in it, showing the server `client-cert.pem` with its key
        /// `client-key.pem` if they are there.
        ///
        /// Example: `uri=nbd://localhost:10809/disk`.
        uri: Utf8Text;
    }
}

options! {
    /// Options of `nfs`.
    pub struct Nfs, scope Scope::Engine(&[EngineName::Nfs]);

    "Engine nfs" {
        /// Server and path, as a URL of libnfs.
        ///
        /// `nfs://HOST/PATH?OPTION=VALUE&OPTION=VALUE`, for example `nfsport=` and `mountport=` for a server that no portmapper
        /// knows, or `autoreconnect=-1` to wait for a server that is gone.
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
