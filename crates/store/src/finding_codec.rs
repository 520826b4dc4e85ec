//! How findings are encoded.
//!
//! Invariant: a code is stored by its name, and a subject and a figure by a number that never changes its meaning.

use std::borrow::Cow;
use std::path::PathBuf;

use fiord_report::table::Cell;
use fiord_report::{Code, Figure, Finding, Subject};

use crate::codec;
use crate::codec::{Codec, Damaged, Decoder, Encoder};

codec!(Finding { code, subject, option, figures, sentence, remedy });
codec!(Figure { name, value });

/// The warnings of versions 1 to 3, and whether the text had them: about options, at a place or of a job.
pub fn warnings(from: &mut Decoder<'_>) -> Result<Vec<Finding>, Damaged> {
    let all: Vec<Warning> = Codec::decode(from)?;
    bool::decode(from)?;
    let finding = |Warning { code, place, message }: Warning| {
        // A name as it was stored: the option may have been renamed since.
        Finding { option: Cow::Owned(code), ..Finding::new(Code::Option, Subject::Place(place), message, "") }
    };
    Ok(all.into_iter().map(finding).collect())
}

struct Warning {
    code: String,
    place: String,
    message: String,
}

codec!(Warning { code, place, message });

impl Codec for Cow<'static, str> {
    fn encode(&self, out: &mut Encoder) {
        out.text(self);
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        String::decode(from).map(Cow::Owned)
    }
}

impl Codec for Code {
    fn encode(&self, out: &mut Encoder) {
        out.text(self.name());
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        Code::from_name(&String::decode(from)?).ok_or(Damaged)
    }
}

impl Codec for Subject {
    fn encode(&self, out: &mut Encoder) {
        let kind: u32 = match self {
            Subject::Run => 0,
            Subject::Target(_) => 1,
            Subject::Job(_) => 2,
            Subject::Place(_) => 3,
            Subject::Device(_) => 4,
            Subject::Machine => 5,
        };
        kind.encode(out);
        match self {
            Subject::Target(path) => path.encode(out),
            Subject::Job(name) | Subject::Place(name) | Subject::Device(name) => name.encode(out),
            Subject::Run | Subject::Machine => {}
        }
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        Ok(match u32::decode(from)? {
            0 => Subject::Run,
            1 => Subject::Target(PathBuf::decode(from)?),
            2 => Subject::Job(String::decode(from)?),
            3 => Subject::Place(String::decode(from)?),
            4 => Subject::Device(String::decode(from)?),
            5 => Subject::Machine,
            _ => return Err(Damaged),
        })
    }
}

impl Codec for Cell {
    fn encode(&self, out: &mut Encoder) {
        let kind: u32 = match self {
            Cell::None => 0,
            Cell::Text(_) => 1,
            Cell::List(_) => 2,
            Cell::Flag(_) => 3,
            Cell::Count(_) => 4,
            Cell::Number(..) => 5,
            Cell::Bytes(_) => 6,
            Cell::Latency(_) => 7,
            Cell::Formatted(..) => 8,
            Cell::Figures(_) => 9,
        };
        kind.encode(out);
        match self {
            Cell::None => {}
            Cell::Text(text) => text.encode(out),
            Cell::List(texts) => texts.encode(out),
            Cell::Flag(flag) => flag.encode(out),
            Cell::Count(figure) | Cell::Bytes(figure) | Cell::Latency(figure) => figure.encode(out),
            Cell::Number(figure, decimals) => (*figure, *decimals as u64).encode(out),
            Cell::Formatted(text, figure) => {
                text.encode(out);
                figure.encode(out);
            }
            Cell::Figures(figures) => figures.encode(out),
        }
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        Ok(match u32::decode(from)? {
            0 => Cell::None,
            1 => Cell::Text(Codec::decode(from)?),
            2 => Cell::List(Codec::decode(from)?),
            3 => Cell::Flag(Codec::decode(from)?),
            4 => Cell::Count(Codec::decode(from)?),
            5 => {
                let (figure, decimals): (f64, u32) = Codec::decode(from)?;
                Cell::Number(figure, decimals as usize)
            }
            6 => Cell::Bytes(Codec::decode(from)?),
            7 => Cell::Latency(Codec::decode(from)?),
            8 => Cell::Formatted(Codec::decode(from)?, Codec::decode(from)?),
            9 => Cell::Figures(Codec::decode(from)?),
            _ => return Err(Damaged),
        })
    }
}
