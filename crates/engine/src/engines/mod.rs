//! The engines: one file each, and one line in the list below.
//!
//! Invariant: every file beside this one is the module of an engine that a job can name, and is in the list once.
//! Outside its file and its line no code names an engine: modules, lists of names, rules, pages and loops derive from
//! the list.

/// Declares a module for each line, and hands the definitions on. Those that need `fiord_sys::uring` exist on 64-bit processors
/// alone, and `EngineName::refusal` says so elsewhere.
macro_rules! engines {
    (
        $(mod $module:ident: $definition:ident;)+
        64 bits: $(mod $ring_module:ident: $ring_definition:ident;)+
        any: $(mod $later_module:ident: $later_definition:ident;)+
    ) => {
        $(
            pub mod $module;
            pub use $module::$definition;
        )+
        $(
            #[cfg(target_pointer_width = "64")]
            pub mod $ring_module;
            #[cfg(target_pointer_width = "64")]
            pub use $ring_module::$ring_definition;
        )+
        $(
            pub mod $later_module;
            pub use $later_module::$later_definition;
        )+

        #[cfg(target_pointer_width = "64")]
        for_each! {
            ($) $($crate::engines::$definition,)+ $($crate::engines::$ring_definition,)+
            $($crate::engines::$later_definition,)+
        }
        #[cfg(not(target_pointer_width = "64"))]
        for_each! { ($) $($crate::engines::$definition,)+ $($crate::engines::$later_definition,)+ }

        /// The names of the modules.
        #[cfg(test)]
        const MODULES: &[&str] =
            &[$(stringify!($module),)+ $(stringify!($ring_module),)+ $(stringify!($later_module),)+];
    };
}

/// Makes these definitions those of `for_each_engine`. A macro that writes another cannot write a dollar sign itself.
macro_rules! for_each {
    (($dollar:tt) $($definitions:tt)+) => {
        /// Passes the definitions of all engines to a macro.
        #[macro_export]
        macro_rules! for_each_engine {
            ($dollar callback:ident) => { $dollar callback! { $($definitions)+ } };
        }
    };
}

// In the order of lists; queued engines in the order of their kernel interfaces, oldest first.
engines! {
    mod sync: Sync;
    mod psync: Psync;
    mod vsync: Vsync;
    mod pvsync: Pvsync;
    mod pvsync2: Pvsync2;
    mod splice: Splice;
    mod mmap: Mmap;
    mod libpmem: Libpmem;
    mod dev_dax: DevDax;
    mod mtd: Mtd;
    mod sg: Sg;
    mod posixaio: Posixaio;
    mod libaio: Libaio;
    mod libcufile: Libcufile;
    64 bits:
    mod io_uring: IoUring;
    mod io_uring_cmd: IoUringCmd;
    any:
    mod rados: Rados;
    mod rbd: Rbd;
    mod gfapi: Gfapi;
    mod gfapi_async: GfapiAsync;
    mod libiscsi: Libiscsi;
    mod nfs: Nfs;
    mod falloc: Falloc;
    mod ftruncate: Ftruncate;
    mod e4defrag: E4defrag;
    mod net: Net;
    mod netsplice: Netsplice;
    mod rdma: Rdma;
    mod nbd: Nbd;
    mod http: Http;
    mod filecreate: Filecreate;
    mod filestat: Filestat;
    mod filedelete: Filedelete;
    mod dircreate: Dircreate;
    mod dirstat: Dirstat;
    mod dirdelete: Dirdelete;
    mod cpuio: CpuIo;
    mod exec: Exec;
    mod page_fault: PageFault;
    mod null: Null;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::MODULES;

    #[test]
    fn every_file_of_an_engine_is_in_the_list() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engines");
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        let files: BTreeSet<String> = names
            .filter_map(|name| Some(name.to_str()?.strip_suffix(".rs")?.to_string()))
            .filter(|name| name != "mod")
            .collect();
        let listed: BTreeSet<String> = MODULES.iter().map(ToString::to_string).collect();
        assert_eq!((files, MODULES.len()), (listed.clone(), listed.len()));
    }
}
