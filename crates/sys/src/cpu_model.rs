//! The model of the processors, from `/proc/cpuinfo`.
//!
//! Invariant: a processor of which no name is known is described by its numbers, and never by the name of another.

/// The model that this text of `/proc/cpuinfo` names; on ARM, where the kernel gives numbers, by what their manufacturers call
/// them. Processors of several kinds are named in the order of the text: `Cortex-A55 + Cortex-A76`.
pub fn cpu_model(cpuinfo: &str) -> Option<String> {
    let values = |key: &'static str| cpuinfo.lines().filter_map(move |line| value(line, key));
    if let Some(name) = values("model name").next() {
        return Some(name.to_owned());
    }
    let mut names: Vec<String> = Vec::new();
    for (implementer, part) in values("CPU implementer").zip(values("CPU part")) {
        let name = match (number(implementer), number(part)) {
            (Some(implementer), Some(part)) => arm_name(implementer, part),
            _ => continue,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| names.join(" + "))
}

fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (name, value) = line.split_once(':')?;
    let value = value.trim();
    (name.trim_end() == key && !value.is_empty()).then_some(value)
}

fn number(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn arm_name(implementer: u16, part: u16) -> String {
    match ARM.iter().find(|(of, number, _)| (*of, *number) == (implementer, part)) {
        Some((_, _, name)) => (*name).to_string(),
        None => format!("ARM part {part:#05x} of implementer {implementer:#04x}"),
    }
}

/// Implementer and part of the register `MIDR_EL1`, and the name.
const ARM: &[(u16, u16, &str)] = &[
    (0x41, 0xd02, "Cortex-A34"),
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd04, "Cortex-A35"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd06, "Cortex-A65"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse N1"),
    (0x41, 0xd0d, "Cortex-A77"),
    (0x41, 0xd0e, "Cortex-A76AE"),
    (0x41, 0xd40, "Neoverse V1"),
    (0x41, 0xd41, "Cortex-A78"),
    (0x41, 0xd42, "Cortex-A78AE"),
    (0x41, 0xd43, "Cortex-A65AE"),
    (0x41, 0xd44, "Cortex-X1"),
    (0x41, 0xd46, "Cortex-A510"),
    (0x41, 0xd47, "Cortex-A710"),
    (0x41, 0xd48, "Cortex-X2"),
    (0x41, 0xd49, "Neoverse N2"),
    (0x41, 0xd4a, "Neoverse E1"),
    (0x41, 0xd4b, "Cortex-A78C"),
    (0x41, 0xd4c, "Cortex-X1C"),
    (0x41, 0xd4d, "Cortex-A715"),
    (0x41, 0xd4e, "Cortex-X3"),
    (0x41, 0xd4f, "Neoverse V2"),
    (0x41, 0xd80, "Cortex-A520"),
    (0x41, 0xd81, "Cortex-A720"),
    (0x41, 0xd82, "Cortex-X4"),
    (0x41, 0xd84, "Neoverse V3"),
    (0x41, 0xd85, "Cortex-X925"),
    (0x41, 0xd87, "Cortex-A725"),
    (0x41, 0xd8e, "Neoverse N3"),
    (0x42, 0x516, "ThunderX2"),
    (0x43, 0x0a0, "ThunderX"),
    (0x43, 0x0a1, "ThunderX 88XX"),
    (0x43, 0x0a2, "ThunderX 81XX"),
    (0x43, 0x0a3, "ThunderX 83XX"),
    (0x43, 0x0af, "ThunderX2"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "TaiShan v110 (Kunpeng 920)"),
    (0x4e, 0x004, "Carmel"),
    (0x50, 0x000, "X-Gene"),
    (0x51, 0x001, "Oryon"),
    (0x51, 0xc00, "Falkor"),
    (0x61, 0x022, "Apple M1 (Icestorm)"),
    (0x61, 0x023, "Apple M1 (Firestorm)"),
    (0x61, 0x024, "Apple M1 Pro (Icestorm)"),
    (0x61, 0x025, "Apple M1 Pro (Firestorm)"),
    (0x61, 0x028, "Apple M1 Max (Icestorm)"),
    (0x61, 0x029, "Apple M1 Max (Firestorm)"),
    (0x61, 0x032, "Apple M2 (Blizzard)"),
    (0x61, 0x033, "Apple M2 (Avalanche)"),
    (0x61, 0x034, "Apple M2 Pro (Blizzard)"),
    (0x61, 0x035, "Apple M2 Pro (Avalanche)"),
    (0x61, 0x038, "Apple M2 Max (Blizzard)"),
    (0x61, 0x039, "Apple M2 Max (Avalanche)"),
    (0x6d, 0xd49, "Azure Cobalt 100"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1A"),
    (0xc0, 0xac5, "Ampere-1B"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(processors: &[(&str, &str)]) -> String {
        let of = |(number, (implementer, part)): (usize, &(&str, &str))| {
            format!(
                "processor\t: {number}\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd crc32\nCPU implementer\t: {implementer}\n\
                 CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: {part}\nCPU revision\t: 1\n\n"
            )
        };
        processors.iter().enumerate().map(of).collect()
    }

    #[test]
    fn a_name_that_the_kernel_gives_is_taken() {
        let text = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 1\nmodel name\t: AMD EPYC 9654 96-Core Processor\n";
        assert_eq!(cpu_model(text).as_deref(), Some("AMD EPYC 9654 96-Core Processor"));
    }

    #[test]
    fn numbers_of_arm_processors_have_names() {
        for (implementer, part, name) in [
            ("0x41", "0xd0c", "Neoverse N1"),
            ("0x41", "0xd4f", "Neoverse V2"),
            ("0x41", "0xd03", "Cortex-A53"),
            ("0xc0", "0xac3", "Ampere-1"),
            ("0x48", "0xd01", "TaiShan v110 (Kunpeng 920)"),
            ("0x43", "0x0af", "ThunderX2"),
            ("0x51", "0x001", "Oryon"),
        ] {
            assert_eq!(cpu_model(&arm(&[(implementer, part); 4])).as_deref(), Some(name));
        }
    }

    #[test]
    fn each_kind_of_processor_is_named_once_in_order() {
        let phone = arm(&[("0x41", "0xd05"), ("0x41", "0xd05"), ("0x41", "0xd0b"), ("0x41", "0xd44")]);
        assert_eq!(cpu_model(&phone).as_deref(), Some("Cortex-A55 + Cortex-A76 + Cortex-X1"));
    }

    #[test]
    fn an_unknown_part_keeps_its_numbers_and_a_damaged_text_has_no_name() {
        assert_eq!(
            cpu_model(&arm(&[("0x41", "0xfff")])).as_deref(),
            Some("ARM part 0xfff of implementer 0x41")
        );
        // The part of one implementer is not that of another.
        assert_eq!(
            cpu_model(&arm(&[("0x61", "0xd03")])).as_deref(),
            Some("ARM part 0xd03 of implementer 0x61")
        );
        for nothing in ["", "processor: 0\n", "CPU implementer: x\nCPU part: 0x\n", "model name:\n", ":::\n"]
        {
            assert_eq!(cpu_model(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn no_part_has_two_names() {
        for (index, (implementer, part, _)) in ARM.iter().enumerate() {
            assert!(ARM[..index].iter().all(|(of, number, _)| (of, number) != (implementer, part)));
        }
    }
}
