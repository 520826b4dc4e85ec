//! Memory of an NVIDIA GPU, by the CUDA driver's library, `libcuda.so.1`.
//!
//! Invariant: memory is given back before the context that it is in, and this program never reads or writes it but by the
//! library's copies.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{CAN_LOAD, Unavailable, functions};
use crate::width::{to_c_int, to_usize};

functions! {
    /// Functions of libcuda. Those with a number at the end are what its header makes of the names without one.
    #[allow(non_snake_case, reason = "the library's names")]
    struct Cuda from "libcuda.so.1" of package "libcuda1, or libnvidia-compute-VERSION on Ubuntu: the driver of the GPU";
    fn cuInit(c_uint) -> c_int;
    fn cuGetErrorName(c_int, *mut *const c_char) -> c_int;
    fn cuDeviceGet(*mut c_int, c_int) -> c_int;
    fn cuDeviceGetPCIBusId(*mut c_char, c_int, c_int) -> c_int;
    fn cuDevicePrimaryCtxRetain(*mut *mut c_void, c_int) -> c_int;
    fn cuDevicePrimaryCtxRelease_v2(c_int) -> c_int;
    fn cuCtxSetCurrent(*mut c_void) -> c_int;
    fn cuCtxSynchronize() -> c_int;
    fn cuMemAlloc_v2(*mut u64, usize) -> c_int;
    fn cuMemFree_v2(u64) -> c_int;
    fn cuMemcpyHtoD_v2(u64, *const c_void, usize) -> c_int;
    fn cuMemcpyDtoH_v2(*mut c_void, u64, usize) -> c_int;
}

/// Why memory of a GPU, or cuFile, cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuError {
    /// A library itself.
    Unavailable(Unavailable),
    /// A call of libcuda, and the number it returned.
    Cuda(&'static str, i32),
    /// A call of libcufile, and the number it returned.
    Cufile(&'static str, i32),
}

impl From<Unavailable> for GpuError {
    fn from(unavailable: Unavailable) -> GpuError {
        GpuError::Unavailable(unavailable)
    }
}

/// The last error of a copy, of any thread; 0 if there was none.
static LAST_COPY_ERROR: AtomicI32 = AtomicI32::new(0);

/// The number of the last copy that failed.
pub fn last_copy_error() -> i32 {
    LAST_COPY_ERROR.load(Ordering::Relaxed)
}

/// CUDA's name of an error, such as `CUDA_ERROR_NO_DEVICE`; nothing for a number without one.
pub fn error_name(number: i32) -> Option<&'static str> {
    let mut name = ptr::null();
    // SAFETY: the name is written to. It is a constant of the library, which stays loaded.
    unsafe {
        (Cuda::get().ok()?.cuGetErrorName)(number, &raw mut name);
        if name.is_null() { None } else { CStr::from_ptr(name).to_str().ok() }
    }
}

/// The result of a call.
#[inline]
fn checked(call: &'static str, answer: c_int) -> Result<(), GpuError> {
    if answer == 0 { Ok(()) } else { Err(GpuError::Cuda(call, answer)) }
}

/// Whether the library can be used; loads it.
///
/// # Errors
/// Why not, and what to do.
#[inline]
pub fn is_available() -> Result<(), Unavailable> {
    Cuda::get().map(drop)
}

/// A GPU, whose primary context is that of the thread that opened it.
#[derive(Debug)]
struct Gpu {
    functions: &'static Cuda,
    device: c_int,
}

impl Gpu {
    fn open(number: u32) -> Result<Gpu, GpuError> {
        let functions = Cuda::get()?;
        let (mut device, mut context) = (0, ptr::null_mut());
        // SAFETY: the calls take numbers, and write the device and the context.
        unsafe {
            checked("cuInit", (functions.cuInit)(0))?;
            checked("cuDeviceGet", (functions.cuDeviceGet)(&raw mut device, number.cast_signed()))?;
            let retained = (functions.cuDevicePrimaryCtxRetain)(&raw mut context, device);
            checked("cuDevicePrimaryCtxRetain", retained)?;
            let gpu = Gpu { functions, device };
            gpu.note_address();
            checked("cuCtxSetCurrent", (functions.cuCtxSetCurrent)(context))?;
            Ok(gpu)
        }
    }
}

/// The GPUs of a run, by their PCI addresses.
static ADDRESSES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The PCI addresses, as in sysfs, of the GPUs that were used in this run.
#[inline]
pub fn addresses() -> Vec<String> {
    if CAN_LOAD { ADDRESSES.lock().unwrap_or_else(PoisonError::into_inner).clone() } else { Vec::new() }
}

/// A new run begins, which has not used a GPU yet.
pub fn forget_addresses() {
    ADDRESSES.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

impl Gpu {
    /// Without an answer its place is not known.
    fn note_address(&self) {
        // With its end, an address has 13 characters, and more where there are more domains than four digits count.
        let mut text = [0_u8; 32];
        let (to, room) = (text.as_mut_ptr().cast(), to_c_int(text.len()));
        // SAFETY: there is as much room as the call is told.
        let answer = unsafe { (self.functions.cuDeviceGetPCIBusId)(to, room, self.device) };
        let address = CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy();
        let address = address.to_ascii_lowercase();
        let mut known = ADDRESSES.lock().unwrap_or_else(PoisonError::into_inner);
        if answer == 0 && !known.contains(&address) {
            known.push(address);
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: the context was retained once for this value, and none of its memory is left.
        unsafe { (self.functions.cuDevicePrimaryCtxRelease_v2)(self.device) };
    }
}

/// Memory of a GPU, for the thread that allocated it.
#[derive(Debug)]
pub struct DeviceMemory {
    address: u64,
    length_bytes: usize,
    gpu: Gpu,
}

impl DeviceMemory {
    /// So much memory of the GPU with this number, whose context becomes that of the calling thread.
    ///
    /// # Errors
    /// The call that failed.
    pub fn allocate(gpu: u32, length_bytes: usize) -> Result<DeviceMemory, GpuError> {
        let gpu = Gpu::open(gpu)?;
        let mut address = 0;
        // SAFETY: the address is written to.
        checked("cuMemAlloc", unsafe { (gpu.functions.cuMemAlloc_v2)(&raw mut address, length_bytes) })?;
        Ok(DeviceMemory { address, length_bytes, gpu })
    }

    /// Where it begins, for calls that take it: no address of this program's memory.
    pub(crate) fn base(&self) -> *mut c_void {
        ptr::without_provenance_mut(to_usize(self.address))
    }

    /// Its length.
    pub(crate) fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// Panics where a part is not inside, as an index out of bounds does.
    #[inline]
    pub(crate) fn check(&self, offset_bytes: usize, length_bytes: usize) {
        let is_inside = offset_bytes <= self.length_bytes && length_bytes <= self.length_bytes - offset_bytes;
        assert!(is_inside, "an operation exceeds the memory of the GPU");
    }

    /// Copies bytes to this place, and waits until they are there: the call alone may return before.
    ///
    /// # Safety
    /// `from` is valid for reads of `length_bytes`, and nobody writes there meanwhile.
    ///
    /// # Errors
    /// The call that failed.
    pub unsafe fn copy_in(
        &self,
        offset_bytes: usize,
        from: *const u8,
        length_bytes: usize,
    ) -> Result<(), GpuError> {
        self.check(offset_bytes, length_bytes);
        let Cuda { cuMemcpyHtoD_v2, cuCtxSynchronize, .. } = self.gpu.functions;
        // SAFETY: the part is inside the memory, and the caller vouches for the source.
        unsafe {
            let to = self.address + offset_bytes as u64;
            noted("cuMemcpyHtoD", cuMemcpyHtoD_v2(to, from.cast(), length_bytes))?;
            noted("cuCtxSynchronize", cuCtxSynchronize())
        }
    }

    /// Copies the bytes at this place.
    ///
    /// # Safety
    /// `to` is valid for writes of `length_bytes`, and used by nobody else meanwhile.
    ///
    /// # Errors
    /// The call that failed.
    pub unsafe fn copy_out(
        &self,
        offset_bytes: usize,
        to: *mut u8,
        length_bytes: usize,
    ) -> Result<(), GpuError> {
        self.check(offset_bytes, length_bytes);
        let from = self.address + offset_bytes as u64;
        // SAFETY: the part is inside the memory, and the caller vouches for the destination.
        noted("cuMemcpyDtoH", unsafe { (self.gpu.functions.cuMemcpyDtoH_v2)(to.cast(), from, length_bytes) })
    }
}

/// The result of a copy, whose error is kept.
#[inline]
fn noted(call: &'static str, answer: c_int) -> Result<(), GpuError> {
    if answer != 0 {
        LAST_COPY_ERROR.store(answer, Ordering::Relaxed);
    }
    checked(call, answer)
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated, and nobody uses it any more.
        unsafe { (self.gpu.functions.cuMemFree_v2)(self.address) };
    }
}
