//! The controller that manages the machine (BMC), through the kernel's IPMI driver.
//!
//! Invariant: the one question sent here changes nothing. An answer belongs to its question, and is waited for until a
//! deadline.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use fiord_device::ipmi::{
    DCMI_NET_FUNCTION, GET_POWER_READING, POWER_ANSWER_BYTES, POWER_QUESTION, parse_power,
};

use crate::errno::check;
use crate::poll::{Until, wait};
use crate::width::to_u32;

/// From the kernel's `linux/ipmi.h`.
const IPMICTL_RECEIVE_MSG_TRUNC: libc::Ioctl = libc::_IOWR::<Received>(b'i' as u32, 11);
const IPMICTL_SEND_COMMAND: libc::Ioctl = libc::_IOR::<Request>(b'i' as u32, 13);
const IPMI_SYSTEM_INTERFACE_ADDR_TYPE: i32 = 0x0c;
const IPMI_BMC_CHANNEL: i16 = 0x0f;
const IPMI_RESPONSE_RECV_TYPE: i32 = 1;

/// `struct ipmi_system_interface_addr`; as long as `struct ipmi_addr`, which the kernel writes.
#[derive(Default)]
#[repr(C)]
struct Address {
    kind: i32,
    channel: i16,
    unit: u8,
    rest: [u8; 32],
}

impl Address {
    /// Length of the kernel's structure for the controller itself.
    const BMC_BYTES: u32 = 8;
}

/// `struct ipmi_msg`.
#[repr(C)]
struct Message {
    net_function: u8,
    command: u8,
    data_bytes: u16,
    data: *mut u8,
}

/// `struct ipmi_req`.
#[repr(C)]
struct Request {
    address: *mut Address,
    address_bytes: u32,
    id: libc::c_long,
    message: Message,
}

/// `struct ipmi_recv`.
#[repr(C)]
struct Received {
    kind: i32,
    address: *mut Address,
    address_bytes: u32,
    id: libc::c_long,
    message: Message,
}

/// An open interface to the controller.
#[derive(Debug)]
pub struct Ipmi {
    device: File,
    questions: libc::c_long,
}

impl Ipmi {
    /// The kernel's first: `/dev/ipmi0`. Needs root.
    ///
    /// # Errors
    /// The kernel's: there is none, or it may not be asked.
    pub fn open() -> io::Result<Ipmi> {
        Ok(Ipmi { device: File::open(Path::new("/dev/ipmi0"))?, questions: 0 })
    }

    /// The machine's power in watts (DCMI, Get Power Reading).
    ///
    /// # Errors
    /// The kernel's; `ETIMEDOUT` without an answer in this time, `ENODATA` for one that does not tell the power.
    pub fn power_watts(&mut self, within: Duration) -> io::Result<u16> {
        let end = Instant::now() + within;
        self.questions += 1;
        self.send()?;
        let mut answer = [0; POWER_ANSWER_BYTES];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match wait(self.device.as_fd(), Until::Readable, Some(left)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
                Ok(false) => return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT)),
                Ok(true) => (),
            }
            // Others are events, and answers that came too late.
            if let Some(length) = self.receive(&mut answer)? {
                let power = parse_power(&answer[..length]);
                return power.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODATA));
            }
        }
    }

    fn send(&self) -> io::Result<()> {
        let (kind, channel) = (IPMI_SYSTEM_INTERFACE_ADDR_TYPE, IPMI_BMC_CHANNEL);
        let mut address = Address { kind, channel, ..Address::default() };
        let mut data = POWER_QUESTION;
        let request = Request {
            address: &raw mut address,
            address_bytes: Address::BMC_BYTES,
            id: self.questions,
            message: Message {
                net_function: DCMI_NET_FUNCTION,
                command: GET_POWER_READING,
                data_bytes: to_u32(data.len()).min(0xffff) as u16,
                data: data.as_mut_ptr(),
            },
        };
        // SAFETY: the kernel copies the request, its address and its data, which live until the call has returned.
        check(unsafe { libc::ioctl(self.device.as_raw_fd(), IPMICTL_SEND_COMMAND, &raw const request) })?;
        Ok(())
    }

    /// The length of the next message, if it is the answer to the last question.
    fn receive(&self, data: &mut [u8]) -> io::Result<Option<usize>> {
        let mut address = Address::default();
        let mut received = Received {
            kind: 0,
            address: &raw mut address,
            address_bytes: to_u32(size_of::<Address>()),
            id: 0,
            message: Message {
                net_function: 0,
                command: 0,
                data_bytes: to_u32(data.len()).min(0xffff) as u16,
                data: data.as_mut_ptr(),
            },
        };
        // SAFETY: the kernel writes the structure, and at most the stated lengths to the address and the data, which live
        // until the call has returned.
        let done = check(unsafe {
            libc::ioctl(self.device.as_raw_fd(), IPMICTL_RECEIVE_MSG_TRUNC, &raw mut received)
        });
        match done {
            // What was cut has been received too.
            Err(error) if error.raw_os_error() != Some(libc::EMSGSIZE) => return Err(error),
            _ => (),
        }
        let is_answer = received.kind == IPMI_RESPONSE_RECV_TYPE && received.id == self.questions;
        Ok(is_answer.then(|| data.len().min(usize::from(received.message.data_bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn structures_have_the_kernels_size() {
        assert_eq!((size_of::<Address>(), size_of::<Request>(), size_of::<Received>()), (40, 40, 48));
        assert_eq!(
            (IPMICTL_SEND_COMMAND as u32, IPMICTL_RECEIVE_MSG_TRUNC as u32),
            (0x8028_690d, 0xc030_690b)
        );
    }

    #[test]
    fn what_is_no_controller_has_no_power() {
        let device = File::open("/proc/self/exe").unwrap();
        assert!(Ipmi { device, questions: 0 }.power_watts(Duration::from_secs(1)).is_err());
    }
}
