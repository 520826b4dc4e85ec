//! The checks of protection information that an NVMe command asks for.
//!
//! Invariant: one bit for each check; no bit without a word.

use super::contract::{Choice, Reading, Value};
use super::kind::ValueKind;

/// `GUARD,REFTAG`: words separated by commas, each at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ProtectionChecks {
    /// The checksum of the data.
    pub guard: bool,
    /// The reference tag, which is the number of the block.
    pub reference: bool,
    /// The application tag.
    pub application: bool,
}

impl Value for ProtectionChecks {
    const KIND: ValueKind = ValueKind::Words;
    const SEPARATORS: &'static [char] = &[];
    const CHOICES: &'static [Choice] = &[
        Choice { word: "GUARD", help: "The checksum of the data." },
        Choice { word: "REFTAG", help: "The reference tag, which is the number of the block." },
        Choice { word: "APPTAG", help: "The application tag." },
    ];

    fn parse(text: &str, reading: &mut Reading) -> Result<ProtectionChecks, String> {
        let mut checks = ProtectionChecks::default();
        for word in text.split(',').map(str::trim) {
            let check = match word {
                "GUARD" => &mut checks.guard,
                "REFTAG" => &mut checks.reference,
                "APPTAG" => &mut checks.application,
                _ => {
                    reading.suggest(word, Self::CHOICES.iter().map(|choice| choice.word));
                    return Err(format!("{word:?} is not one of the allowed values"));
                }
            };
            *check = true;
        }
        Ok(checks)
    }

    fn print(&self) -> String {
        let given = [self.guard, self.reference, self.application];
        let words = Self::CHOICES.iter().zip(given).filter(|(_, given)| *given);
        words.map(|(choice, _)| choice.word).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_read_and_printed() {
        let read = |text: &str| ProtectionChecks::parse(text, &mut Reading::default());
        let both = read("REFTAG,GUARD").unwrap();
        assert_eq!(both, ProtectionChecks { guard: true, reference: true, application: false });
        assert_eq!(both.print(), "GUARD,REFTAG");
        assert_eq!(read(&both.print()), Ok(both));
        assert!(read("GUARD,PARITY").is_err() && read("").is_err());
    }
}
