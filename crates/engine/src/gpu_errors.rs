//! Errors of CUDA and cuFile: their names, usual causes, and what to do.
//!
//! Invariant: cuFile's numbers begin above those of the kernel, and are passed on as they are; an error of CUDA is cuFile's
//! 5011.

use std::io;
use std::sync::OnceLock;

use fiord_sys::errno::{Errno, Explained};
use fiord_sys::library::CAN_LOAD;
use fiord_sys::library::cuda::{self, GpuError};
use fiord_sys::library::cufile::CUDA_DRIVER_ERROR;

use crate::setup_error::SetupError;

/// What cuFile asks udev for.
const UDEV: &str = "cuFile asks udev's database what the device is: `udevadm info DEVICE` must show ID_FS_USAGE and \
                    ID_FS_TYPE (`udevadm trigger DEVICE` fills it in, and a container needs /run/udev); the file must be \
                    open with direct=1";

const LOG: &str = "see cufile.log";

/// What makes memory be pinned.
const PINNED: &str =
    "use a smaller iodepth, bs or numjobs, or raise max_device_pinned_mem_size_kb in /etc/cufile.json";

/// How to see what the machine can do.
const GDSCHECK: &str = "`gdscheck -p` shows what is supported here";

macro_rules! errors {
    ($($number:literal $name:literal $remedy:expr;)+) => {
        /// The name and number of an error of cuFile, and what to do.
        fn of_cufile(number: i32) -> Option<(&'static str, &'static str)> {
            match number {
                $($number => Some((concat!("CU_FILE_", $name, " (", $number, ")"), $remedy)),)+
                _ => None,
            }
        }
    };
}

errors! {
    5001 "DRIVER_NOT_INITIALIZED" "load nvidia-fs (modprobe nvidia-fs), or allow compatibility mode in /etc/cufile.json";
    5002 "DRIVER_INVALID_PROPS" "correct /etc/cufile.json";
    5003 "DRIVER_UNSUPPORTED_LIMIT" "correct /etc/cufile.json";
    5004 "DRIVER_VERSION_MISMATCH" "install the nvidia-fs that belongs to this libcufile";
    5005 "DRIVER_VERSION_READ_ERROR" "install the nvidia-fs that belongs to this libcufile";
    5006 "DRIVER_CLOSING" LOG;
    5007 "PLATFORM_NOT_SUPPORTED" GDSCHECK;
    5008 "IO_NOT_SUPPORTED" GDSCHECK;
    5009 "DEVICE_NOT_SUPPORTED" GDSCHECK;
    5010 "NVFS_DRIVER_ERROR" "see the kernel's log (dmesg) and cufile.log";
    5011 "CUDA_DRIVER_ERROR" LOG;
    5012 "CUDA_POINTER_INVALID" LOG;
    5013 "CUDA_MEMORY_TYPE_INVALID" LOG;
    5014 "CUDA_POINTER_RANGE_ERROR" LOG;
    5015 "CUDA_CONTEXT_MISMATCH" LOG;
    5016 "INVALID_MAPPING_SIZE" PINNED;
    5017 "INVALID_MAPPING_RANGE" LOG;
    5018 "INVALID_FILE_TYPE" UDEV;
    5019 "INVALID_FILE_OPEN_FLAG" "use direct=1, and no other option that changes how files are opened";
    5020 "DIO_NOT_SET" "use direct=1";
    5022 "INVALID_VALUE" LOG;
    5023 "MEMORY_ALREADY_REGISTERED" LOG;
    5024 "MEMORY_NOT_REGISTERED" LOG;
    5025 "PERMISSION_DENIED" "check the rights on the file and on /dev/nvidia-fs*";
    5026 "DRIVER_ALREADY_OPEN" LOG;
    5027 "HANDLE_NOT_REGISTERED" UDEV;
    5028 "HANDLE_ALREADY_REGISTERED" LOG;
    5029 "DEVICE_NOT_FOUND" GDSCHECK;
    5030 "INTERNAL_ERROR" LOG;
    5031 "GETNEWFD_FAILED" "raise the limit on open files (ulimit -n)";
    5033 "NVFS_SETUP_ERROR" "see the kernel's log (dmesg) and cufile.log";
    5034 "IO_DISABLED" "allow it in /etc/cufile.json";
    5035 "BATCH_SUBMIT_FAILED" LOG;
    5036 "GPU_MEMORY_PINNING_FAILED" PINNED;
    5037 "BATCH_FULL" "use a smaller iodepth";
    5038 "ASYNC_NOT_SUPPORTED" LOG;
    5039 "INTERNAL_BATCH_SETUP_ERROR" LOG;
    5040 "INTERNAL_BATCH_SUBMIT_ERROR" LOG;
    5041 "INTERNAL_BATCH_GETSTATUS_ERROR" LOG;
    5042 "INTERNAL_BATCH_CANCEL_ERROR" LOG;
    5043 "NOMEM_ERROR" "use a smaller iodepth, bs or numjobs";
    5044 "IO_ERROR" LOG;
    5045 "INTERNAL_BUF_REGISTER_ERROR" LOG;
    5046 "HASH_OPR_ERROR" LOG;
    5047 "INVALID_CONTEXT_ERROR" LOG;
    5048 "NVFS_INTERNAL_DRIVER_ERROR" "see the kernel's log (dmesg) and cufile.log";
    5049 "BATCH_NOCOMPAT_ERROR" "allow compatibility mode in /etc/cufile.json, or use iodepth=1";
}

/// The name and number of an error of CUDA, and what to do. Made once for each job that fails.
fn of_cuda(number: i32) -> (&'static str, &'static str) {
    let name = cuda::error_name(number).unwrap_or("an error of CUDA");
    let remedy = match number {
        1 | 101 => "set gpu_dev_ids= to a GPU that `nvidia-smi -L` lists",
        2 => "use a smaller iodepth, bs or numjobs, or another GPU: `nvidia-smi` shows what memory is free",
        100 => "`nvidia-smi -L` lists no GPU that this process may use; see CUDA_VISIBLE_DEVICES",
        3 | 802 | 999 => "see whether `nvidia-smi` works, and the kernel's log (dmesg)",
        803 | 804 => "install the libcuda that belongs to the kernel's nvidia module",
        _ => "see the kernel's log (dmesg)",
    };
    (String::leak(format!("{name} ({number})")), remedy)
}

/// The error of the kernel that is nearest to one of CUDA.
fn nearest(number: i32) -> Errno {
    match number {
        2 => Errno::ENOMEM,
        1 | 100 | 101 => Errno(libc::ENODEV),
        _ => Errno::EIO,
    }
}

/// What a call failed with: the call, the number for reports, name and number in the library, and what to do.
fn parts(error: GpuError) -> SetupError {
    match error {
        GpuError::Unavailable(unavailable) => unavailable.into(),
        GpuError::Cuda(call, number) => {
            let (cause, remedy) = of_cuda(number);
            SetupError { call, errno: nearest(number), cause, remedy }
        }
        GpuError::Cufile(call, number) => {
            let (cause, remedy) = of_cufile(number).unwrap_or(("an error of cuFile", LOG));
            let remedy = match call {
                "cuFileBatchIOSetUp" => {
                    "use a smaller iodepth: batches hold at most io_batchsize operations, which /etc/cufile.json sets \
                     (128 by default)"
                }
                _ => remedy,
            };
            SetupError { call, errno: Errno(number), cause, remedy }
        }
    }
}

/// The error of an engine that cannot be set up.
pub(crate) fn refused(error: GpuError) -> SetupError {
    parts(error)
}

/// The error of a file that cannot be registered.
pub(crate) fn unregistered(error: GpuError) -> io::Error {
    let SetupError { call, errno, cause, remedy } = parts(error);
    Explained::with(&errno.into(), format!("{call} failed: {cause}; {remedy}"))
}

/// The number with which an operation fails.
#[inline]
pub(crate) fn number(error: GpuError) -> Errno {
    match error {
        GpuError::Unavailable(_) => Errno::EIO,
        GpuError::Cuda(..) => Errno(CUDA_DRIVER_ERROR),
        GpuError::Cufile(_, number) => Errno(number),
    }
}

/// The same of a copy, whose number no engine of files has.
pub(crate) fn of_copy(number: i32) -> Option<&'static str> {
    if number == CUDA_DRIVER_ERROR { explain(number) } else { None }
}

/// The name of an operation's error, and what to do.
pub(crate) fn explain(number: i32) -> Option<&'static str> {
    if !CAN_LOAD {
        return None;
    }
    // The first is the one that ends a job; the text of others would be leaked for each.
    static FIRST: OnceLock<(i32, &'static str)> = OnceLock::new();
    let (name, remedy) = match (number, cuda::last_copy_error()) {
        (CUDA_DRIVER_ERROR, copy) if copy != 0 => of_cuda(copy),
        _ => of_cufile(number)?,
    };
    let (first, text) = FIRST.get_or_init(|| (number, String::leak(format!("{name}: {remedy}"))));
    Some(if *first == number { text } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_named_with_their_number_and_say_what_to_do() {
        let error = unregistered(GpuError::Cufile("cuFileHandleRegister", 5027));
        let text = Explained::of(&error).unwrap().explanation.clone();
        for part in
            ["cuFileHandleRegister", "CU_FILE_HANDLE_NOT_REGISTERED (5027)", "ID_FS_USAGE", "direct=1"]
        {
            assert!(text.contains(part), "{text}");
        }
        let deep = refused(GpuError::Cufile("cuFileBatchIOSetUp", 5039));
        assert!(deep.to_string().contains("io_batchsize"), "{deep}");
        let full = refused(GpuError::Cuda("cuMemAlloc", 2));
        assert_eq!((full.errno, full.cause.contains("(2)")), (Errno::ENOMEM, true));
        assert_eq!(number(GpuError::Cuda("cuMemcpyHtoD", 700)), Errno(5011));
    }

    #[test]
    fn every_number_of_cufile_is_explained_and_no_number_of_the_kernel() {
        for number in (5001..=5049).filter(|number| ![5021, 5032].contains(number)) {
            let (name, remedy) = of_cufile(number).unwrap();
            assert!(name.ends_with(&format!("({number})")) && !remedy.is_empty(), "{name}");
        }
        assert!((0..5001).all(|number| of_cufile(number).is_none()));
    }
}
