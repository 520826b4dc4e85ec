//! Flame graphs: stacks merged into one picture, alone or as the difference of two.
//!
//! Invariant: the width of a box is its share of the samples, and a box is as wide as those on top of it at least; texts do not
//! depend on a script.

use std::collections::BTreeMap;

use fiord_stats::Capped;
use fiord_svg::{Anchor, Document, Element};

use crate::stacks::Stacks;

/// Width of a picture, and the height of a box.
const WIDTH: f64 = 1200.0;
const BOX: f64 = 17.0;
/// Above the boxes, for the title.
const TITLE: f64 = 24.0;
/// A box that is narrower is left out, together with those on top of it.
const WIDTH_MIN: f64 = 0.5;
/// Width of a letter, about.
const LETTER: f64 = 6.6;
/// A box that is narrower has no text.
const TEXT_MIN: f64 = 26.0;

/// Classes of colours: how much a share has changed in a difference, in steps on both sides of none.
const STEPS: i8 = 3;
/// A change of the share by this much is a step, in percentage points.
const STEP_POINTS: f64 = 3.0;

/// A function, called by those below it.
#[derive(Default)]
struct Frame {
    count: u64,
    before: u64,
    calls: BTreeMap<String, Frame>,
}

impl Frame {
    fn add(&mut self, stack: &[String], count: u64, before: u64) {
        self.count += count;
        self.before += before;
        if let [outermost, rest @ ..] = stack {
            self.calls.entry(outermost.clone()).or_default().add(rest, count, before);
        }
    }

    fn height(&self) -> usize {
        1 + self.calls.values().map(Frame::height).max().unwrap_or(0)
    }
}

/// What the boxes of a picture have in common.
struct Scale {
    all: u64,
    all_before: Option<u64>,
    height: f64,
}

/// The flame graph of these samples, for a page; `id` is unique in it.
pub fn graph(id: &str, title: &str, stacks: &Stacks) -> String {
    let mut root = Frame::default();
    stacks.counts.iter().for_each(|(stack, count)| root.add(stack, *count, 0));
    let description = format!(
        "{} samples; the width of a box is the share of samples with that function, which is called by the one below it.",
        stacks.samples()
    );
    draw(id, title, &description, &root, None)
}

/// The flame graph of `after`, with the change of each share since `before` as a colour.
pub fn difference(id: &str, title: &str, before: &Stacks, after: &Stacks) -> String {
    let mut root = Frame::default();
    after.counts.iter().for_each(|(stack, count)| root.add(stack, *count, 0));
    before.counts.iter().for_each(|(stack, count)| root.add(stack, 0, *count));
    let description = "Widths are those of the second variant; orange boxes have a larger share of the samples than in the \
                       first, blue ones a smaller share. The tooltip of a box has both.";
    draw(id, title, description, &root, Some(before.samples()))
}

fn draw(id: &str, title: &str, description: &str, root: &Frame, all_before: Option<u64>) -> String {
    let height = root.height() as f64 * BOX + TITLE;
    let mut svg = Document::inline((WIDTH, height), id, title, description);
    svg.add(Element::text((0.0, 15.0), Anchor::Start, title).class("flame-title"));
    let scale = Scale { all: root.count, all_before, height };
    frame(&mut svg, "all", root, (0.0, 0), &scale);
    svg.finish()
}

/// A box and those on top of it, from this x, at this level.
fn frame(svg: &mut Document, name: &str, of: &Frame, (x, level): (f64, usize), scale: &Scale) {
    let width = of.count as f64 / scale.all.max(1) as f64 * WIDTH;
    if width < WIDTH_MIN {
        return;
    }
    let top = scale.height - (level + 1) as f64 * BOX - 1.0;
    let share = 100.0 * of.count as f64 / scale.all.max(1) as f64;
    let (class, tooltip) = match scale.all_before {
        None => (colour(name), format!("{name}: {share:.1} % of the samples")),
        Some(all_before) => {
            let before = 100.0 * of.before as f64 / all_before.max(1) as f64;
            (step(share - before), format!("{name}: {share:.1} % of the samples, before {before:.1} %"))
        }
    };
    let outline = Element::rectangle((x, top), (width, BOX - 1.0));
    svg.add(outline.class(&format!("flame {class}")).tooltip(&tooltip));
    if width >= TEXT_MIN {
        let letters = usize::capped((width - 6.0) / LETTER);
        let shown: String = match name.chars().count() <= letters {
            true => name.to_string(),
            false => name.chars().take(letters.saturating_sub(1)).chain(['…']).collect(),
        };
        svg.add(Element::text((x + 3.0, top + 12.0), Anchor::Start, &shown).class("flame-text"));
    }
    let mut x = x;
    for (name, call) in &of.calls {
        frame(svg, name, call, (x, level + 1), scale);
        x += call.count as f64 / scale.all.max(1) as f64 * WIDTH;
    }
}

/// The class of a function's colour: by its layer, so that the same function has the same colour in every picture.
fn colour(name: &str) -> &'static str {
    match crate::stacks::kind(name) {
        Some(kind) => kind,
        None => "f-other",
    }
}

/// The class of a change, in percentage points.
fn step(points: f64) -> &'static str {
    const CLASSES: [&str; 7] = ["d-less3", "d-less2", "d-less1", "d-same", "d-more1", "d-more2", "d-more3"];
    let step = i64::capped((points / STEP_POINTS).round().clamp(f64::from(-STEPS), f64::from(STEPS)));
    CLASSES[usize::try_from(step + i64::from(STEPS)).unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(all: &[(&str, u64)]) -> Stacks {
        let counts =
            all.iter().map(|(stack, count)| (stack.split(';').map(str::to_string).collect(), *count));
        Stacks { counts: counts.collect() }
    }

    #[test]
    fn widths_are_shares_and_functions_lie_on_their_callers() {
        let svg = graph("f", "Flame <graph>", &stacks(&[("a;ext4_b", 30), ("a;c<d>", 60), ("e", 10)]));
        assert!(svg.contains("Flame &lt;graph&gt;") && svg.contains("100 samples"), "{svg}");
        let rect = |width: &str, class: &str| {
            svg.lines().any(|line| line.contains(&format!("width=\"{width}\"")) && line.contains(class))
        };
        assert!(rect("1200", "f-other") && rect("1080", "f-other") && rect("360", "f-file"), "{svg}");
        assert!(svg.contains("c&lt;d&gt;: 60.0 % of the samples"), "{svg}");
        assert!(!svg.contains("<script"), "{svg}");
    }

    #[test]
    fn a_difference_has_the_widths_of_the_second_and_both_shares() {
        let svg = difference("d", "Change", &stacks(&[("a", 90), ("b", 10)]), &stacks(&[("a", 1), ("b", 3)]));
        assert!(svg.contains("b: 75.0 % of the samples, before 10.0 %"), "{svg}");
        assert!(
            svg.contains("flame d-more3") && svg.contains("flame d-less3") && svg.contains("flame d-same"),
            "{svg}"
        );
    }

    #[test]
    fn no_samples_are_no_panic() {
        assert!(graph("f", "Empty", &Stacks::default()).ends_with("</svg>\n"));
        difference("d", "Empty", &Stacks::default(), &Stacks::default());
    }
}
