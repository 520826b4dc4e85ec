//! The targets for what disks answer when they are asked for their health, and the machine for its power.
//!
//! Invariant: any bytes are an answer, and what is cut from its end adds nothing.

use fiord_device::ata::{SMART_DATA_BYTES, parse_smart_data, parse_smart_status};
use fiord_device::ipmi::{POWER_ANSWER_BYTES, parse_power};
use fiord_device::nvme::{HEALTH_PAGE_BYTES, parse_health};
use fiord_device::nvme_namespace::IDENTIFY_BYTES;
use fiord_device::nvme_power::parse_power_state;
use fiord_device::scsi::parse_log_pages;

/// The bytes, with zeros up to this length.
fn padded<const BYTES: usize>(data: &[u8]) -> [u8; BYTES] {
    std::array::from_fn(|index| data.get(index).copied().unwrap_or(0))
}

/// The health log page of an NVMe disk.
pub fn health_nvme(data: &[u8]) {
    let page = padded::<HEALTH_PAGE_BYTES>(data);
    let log = parse_health(&page);
    assert_eq!(log.is_too_hot, page[0] & 2 != 0);
    assert!(log.failure_warning.is_none() || page[0] & !(2 | 32) != 0, "{log:?}");
}

/// The data of SMART READ DATA with a correct checksum, and sense data with the registers of an ATA disk.
pub fn health_ata(data: &[u8]) {
    let mut sector = padded::<SMART_DATA_BYTES>(data);
    let rest = sector[..SMART_DATA_BYTES - 1].iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    sector[SMART_DATA_BYTES - 1] = rest.wrapping_neg();
    let log = parse_smart_data(&sector);
    assert_eq!(log.is_none(), sector.iter().all(|byte| *byte == 0));
    sector[0] ^= 1;
    assert_eq!(parse_smart_data(&sector), None, "the checksum is wrong");
    for length in 0..=data.len().min(64) {
        let _ = parse_smart_status(&data[..length]);
    }
}

/// Log pages of a SCSI disk, each after a byte that has its length.
pub fn health_scsi(data: &[u8]) {
    let mut pages = Vec::new();
    let mut rest = data;
    while let Some((length, after)) = rest.split_first() {
        let (page, after) = after.split_at(after.len().min(usize::from(*length)));
        pages.push(page);
        rest = after;
    }
    let log = parse_log_pages(pages.iter().copied());
    let celsius = log.temperature_celsius;
    assert!(celsius.is_none_or(|celsius| (0..255).contains(&celsius)), "{log:?}");
    let none = parse_log_pages(pages.iter().map(|page| &page[..page.len().min(4)]));
    assert_eq!(none, Default::default(), "headers alone report nothing");
}

/// The answer of a management controller that is asked for the power.
pub fn power_ipmi(data: &[u8]) {
    let power = parse_power(data);
    assert!(power.is_none_or(|watts| watts > 0 && data[0] == 0));
    let cut = &data[..data.len().min(POWER_ANSWER_BYTES - 1)];
    assert_eq!(parse_power(cut), None, "the last byte says whether it measures");
    assert_eq!(parse_power(&[data, &[1]].concat()).filter(|_| data.len() >= POWER_ANSWER_BYTES), power);
}

/// What an NVMe disk says of its power states: the number of the last, the answer that names one, and descriptions.
pub fn power_nvme(data: &[u8]) {
    let [last, named, states @ ..] = data else { return };
    let mut page = [0; IDENTIFY_BYTES];
    page[263] = *last;
    page[2048..].iter_mut().zip(states).for_each(|(to, from)| *to = *from);
    let state = parse_power_state(&page, u32::from(*named));
    assert_eq!(state.is_some(), named & 0x1f <= *last);
    let all = state.map(|state| [state.max_uw, state.idle_uw, state.active_uw]);
    assert!(all.into_iter().flatten().flatten().all(|power_uw| power_uw <= 65_535 * 10_000));
}
