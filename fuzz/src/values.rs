//! Targets for the kinds of values, one per file of `options/src/value/`.
//!
//! Invariant: a printed value is read back as the same value, with every meaning of suffixes, unless it names a URL whose
//! credentials are masked, which is printed the same again; refusals have a message.

use fiord_options::secret;
use fiord_options::value::*;

/// The meanings of suffixes.
const BASES: [KbBase; 2] = [KbBase::Binary, KbBase::Decimal];

fn read<T: Value>(text: &str, kb_base: KbBase) -> Result<T, String> {
    T::parse(text, &mut Reading { kb_base, ..Reading::default() })
}

fn round_trip<T: Value>(text: &str) {
    for base in BASES {
        let value = match read::<T>(text, base) {
            Ok(value) => value,
            Err(why) => {
                assert!(!why.is_empty() && !why.ends_with('.'), "{text:?}: {why:?}");
                continue;
            }
        };
        let printed = value.print();
        if printed.contains(secret::MASK) {
            let again = read::<T>(&printed, base).map(|value| value.print());
            assert_eq!(again.as_deref(), Ok(printed.as_str()), "{text:?} is printed as {printed:?}");
            continue;
        }
        for other in BASES {
            assert_eq!(read(&printed, other).as_ref(), Ok(&value), "{text:?} is printed as {printed:?}");
        }
        // Parsed on top of itself, it must not change.
        let onto = T::parse_onto(Some(&value), &printed, &mut Reading::default());
        assert_eq!(onto.as_ref(), Ok(&value), "{printed:?} on top of itself");
    }
}

/// A target for several kinds: the first byte chooses one.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $name:ident: $($kind:ty)+;)+) => { $(
        $(#[doc = $doc])*
        pub fn $name(data: &[u8]) {
            const KINDS: &[fn(&str)] = &[$(round_trip::<$kind>),+];
            let Some((which, text)) = data.split_first() else { return };
            let Ok(text) = std::str::from_utf8(text) else { return };
            KINDS[usize::from(*which) % KINDS.len()](text);
        }
    )+ };
}

kinds! {
    /// Choices.
    value_choice: KbBase UnitBase RwKind RwSequencer Fallocate FadviseHint WriteHint SyncMode ClockSource
        RandomGenerator RateProcess ThinktimeBlocksType CpusAllowedPolicy ExitWhat UnifiedRwReporting ContinueOnError
        FileType LockFile IoSubmitMode ZoneMode Verify VerifyPolicy LogWindowValue DedupeMode DataPlacement
        PlidSelect EtaWhen IdleProf;
    /// CPUs and NUMA nodes.
    value_number_set: NumberSet NumaNodes NumaPolicy;
    /// A value for each direction.
    value_direction: PerDirection<Bytes> PerDirection<u32> PerDirection<u64> PerDirection<Size>
        PerDirection<BlockRange> PerDirection<Micros>;
    /// Errors to ignore.
    value_errors: IgnoreErrors;
    /// Choice of the next file.
    value_file_service: FileService;
    /// Lists of decimal numbers.
    value_floats: FloatList;
    /// Sources of memory, and kinds of synchronisation.
    value_memory: Memory SyncFileRange;
    /// The direction and order of a job.
    value_mode: RwMode;
    /// Whole numbers, sums among them.
    value_number: u32 u64 i32 bool Bytes;
    /// Formats of the report.
    value_output: OutputFormats;
    /// Patterns of buffers.
    value_pattern: BufferPattern VerifyPattern;
    /// Amounts of data.
    value_size: Size SizeRange BlockRange;
    /// Block sizes with their shares.
    value_split: BlockSplit PerDirection<BlockSplit>;
    /// Text, engines and flags.
    value_text: Text OptionalText EngineName Flag Switch;
    /// Times.
    value_time: Seconds Micros StartDelay;
}
