//! Where the time goes as bars, one for each variant.
//!
//! Invariant: a bar is as long as the whole, and what it shows is in the table of the parts, too.

use fiord_profile::{Part, Source};
use fiord_report::table::Cell;
use fiord_stats::Capped;
use fiord_svg::{Anchor, Document, Element};

use super::tables::title;
use super::variant::Variant;

/// The room that a picture has.
pub(super) struct Room {
    id: &'static str,
    width: f64,
    legend_columns: usize,
}

/// A page on a desk.
pub(super) const WIDE: Room = Room { id: "parts", width: 900.0, legend_columns: 3 };
/// A phone.
pub(super) const NARROW: Room = Room { id: "parts-narrow", width: 350.0, legend_columns: 2 };

/// Height of a variant: its name, its bar, and what is between two.
const ROW: f64 = 56.0;
const BAR: f64 = 24.0;
const LEGEND_ROW: f64 = 22.0;

/// The bars, for a page that has the style sheet.
pub(super) fn bars(variants: &[Variant], room: &Room) -> String {
    let Room { id, width: whole_width, legend_columns } = *room;
    let known: Vec<(Part, Source)> = Part::ALL
        .into_iter()
        .filter_map(|part| {
            let source = variants.iter().find_map(|variant| variant.split.get(part))?.1;
            Some((part, source))
        })
        .collect();
    let legend = known.len().div_ceil(legend_columns) as f64 * LEGEND_ROW;
    let height = variants.len() as f64 * ROW + legend + 8.0;
    let description =
        "A bar for each variant, divided by the parts of the time; the table below has the figures.";
    let mut svg = Document::inline((whole_width, height), id, "Where the time of an I/O goes", description);
    for (number, variant) in variants.iter().enumerate() {
        let top = number as f64 * ROW;
        let whole = Cell::Latency(u64::capped(variant.per_io_ns(variant.split.total_ns()).round())).shown();
        let label = format!("{}: {whole} for each I/O", variant.name);
        svg.add(Element::text((0.0, top + 16.0), Anchor::Start, &label));
        let mut x = 0.0;
        for (part, source) in &known {
            let percent = variant.split.percent(*part);
            let width = percent / 100.0 * whole_width;
            if width > 0.0 {
                let outline = Element::rectangle((x, top + 22.0), (width, BAR));
                let tooltip = format!("{}: {percent:.1} %", title(*part, *source));
                svg.add(outline.class(&format!("part {}", class(*part))).tooltip(&tooltip));
            }
            x += width;
        }
    }
    let below = variants.len() as f64 * ROW;
    for (number, (part, source)) in known.iter().enumerate() {
        let (column, row) = (number % legend_columns, number / legend_columns);
        let x = column as f64 * whole_width / legend_columns as f64;
        let y = below + row as f64 * LEGEND_ROW;
        svg.add(Element::rectangle((x, y + 2.0), (14.0, 14.0)).class(&format!("part {}", class(*part))));
        svg.add(Element::text((x + 20.0, y + 14.0), Anchor::Start, title(*part, *source)));
    }
    svg.finish()
}

/// The class of a part's colour.
fn class(part: Part) -> &'static str {
    match part {
        Part::Own => "p-own",
        Part::Fiord => "p-fiord",
        Part::SystemCall => "p-system",
        Part::FileSystem => "p-file",
        Part::BlockCode => "p-block",
        Part::ProcessorWait => "p-processor",
        Part::Queue => "p-queue",
        Part::Device => "p-device",
        Part::Pace => "p-pace",
        Part::Other => "p-other",
    }
}
