//! SVG documents: shapes and texts in, one self-contained file out. All charts are written with it.
//!
//! Invariant: the document is well-formed XML for all texts and numbers, and refers to no other file.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

use std::fmt::Write;

/// A picture under construction.
#[derive(Clone, Debug)]
pub struct Document {
    text: String,
}

/// A shape or a text.
#[derive(Clone, Debug)]
pub struct Element {
    tag: &'static str,
    attributes: String,
    content: String,
}

/// The outline of a shape, drawn by a pen in user units, x to the right and y downwards.
#[derive(Clone, Debug, Default)]
pub struct Path {
    commands: String,
}

/// Which point of a text is at its x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its left end, the default.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

impl Document {
    /// An empty picture of this size in user units (pixels at scale 1). `title` is the text for screen readers;
    /// `style` is the program's own style sheet, written unchanged.
    pub fn new((width, height): (f64, f64), title: &str, style: &'static str) -> Document {
        let (width, height) = (number(width), number(height));
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\">\n<!-- Made by fiord -->\n<title>{}</title>\n<style>\n{}\n</style>\n",
            escaped(title),
            style.trim_end()
        );
        Document { text }
    }

    /// An empty picture of this size for a page of HTML, which has the style sheet. `id` is unique in the page; `title` and
    /// `description` are the texts for screen readers.
    pub fn inline((width, height): (f64, f64), id: &str, title: &str, description: &str) -> Document {
        let (width, height, id) = (number(width), number(height), escaped(id));
        let text = format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\n\
             <title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n",
            escaped(title),
            escaped(description)
        );
        Document { text }
    }

    /// Adds an element on top of those before it.
    pub fn add(&mut self, element: Element) {
        let Element { tag, attributes, content } = element;
        self.text += &match content.as_str() {
            "" => format!("<{tag}{attributes}/>\n"),
            content => format!("<{tag}{attributes}>{content}</{tag}>\n"),
        };
    }

    /// The file's text.
    pub fn finish(self) -> String {
        self.text + "</svg>\n"
    }
}

impl Element {
    /// A rectangle by its upper left corner and its size.
    pub fn rectangle((x, y): (f64, f64), (width, height): (f64, f64)) -> Element {
        Element::of("rect").numbers(&[("x", x), ("y", y), ("width", width), ("height", height)])
    }

    /// A straight line.
    pub fn line((x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Element {
        Element::of("line").numbers(&[("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)])
    }

    /// A line from point to point.
    pub fn polyline(points: impl IntoIterator<Item = (f64, f64)>) -> Element {
        let points: Vec<String> =
            points.into_iter().map(|(x, y)| format!("{},{}", number(x), number(y))).collect();
        Element::of("polyline").set("points", &points.join(" ")).set("fill", "none")
    }

    /// A circle by its centre.
    pub fn circle((x, y): (f64, f64), radius: f64) -> Element {
        Element::of("circle").numbers(&[("cx", x), ("cy", y), ("r", radius)])
    }

    /// An outline.
    pub fn path(path: &Path) -> Element {
        Element::of("path").set("d", &path.commands)
    }

    /// One line of text whose base line has the point that `anchor` selects at this position.
    pub fn text((x, y): (f64, f64), anchor: Anchor, text: &str) -> Element {
        let mut element = Element::of("text").numbers(&[("x", x), ("y", y)]);
        match anchor {
            Anchor::Start => {}
            Anchor::Middle => element = element.set("text-anchor", "middle"),
            Anchor::End => element = element.set("text-anchor", "end"),
        }
        element.content = escaped(text);
        element
    }

    /// With a class of the style sheet.
    #[must_use]
    pub fn class(self, class: &str) -> Element {
        self.set("class", class)
    }

    /// With another attribute.
    #[must_use]
    pub fn set(mut self, name: &'static str, value: &str) -> Element {
        // Writing to a String cannot fail.
        let _ = write!(self.attributes, " {name}=\"{}\"", escaped(value));
        self
    }

    /// With a tooltip.
    #[must_use]
    pub fn tooltip(mut self, text: &str) -> Element {
        let _ = write!(self.content, "<title>{}</title>", escaped(text));
        self
    }

    fn of(tag: &'static str) -> Element {
        Element { tag, attributes: String::new(), content: String::new() }
    }

    fn numbers(self, values: &[(&'static str, f64)]) -> Element {
        values.iter().fold(self, |element, (name, value)| element.set(name, &number(*value)))
    }
}

impl Path {
    /// An outline that starts here.
    pub fn from((x, y): (f64, f64)) -> Path {
        Path::default().move_to((x, y))
    }

    /// Moves the pen here without drawing.
    #[must_use]
    pub fn move_to(self, (x, y): (f64, f64)) -> Path {
        self.command('M', &[x, y])
    }

    /// A straight line to the point this far to the right and downwards.
    #[must_use]
    pub fn line_by(self, (dx, dy): (f64, f64)) -> Path {
        self.command('l', &[dx, dy])
    }

    /// A horizontal line to this x.
    #[must_use]
    pub fn horizontal_to(self, x: f64) -> Path {
        self.command('H', &[x])
    }

    /// A vertical line to this y.
    #[must_use]
    pub fn vertical_to(self, y: f64) -> Path {
        self.command('V', &[y])
    }

    /// A line back to the start.
    #[must_use]
    pub fn close(mut self) -> Path {
        self.commands.push('z');
        self
    }

    fn command(mut self, letter: char, operands: &[f64]) -> Path {
        let operands: Vec<String> = operands.iter().copied().map(number).collect();
        self.commands.push(letter);
        self.commands += &operands.join(" ");
        self
    }
}

/// A number to a tenth of a unit, without needless decimals. NaN and infinity are written as 0.
fn number(value: f64) -> String {
    let tenths = (value * 10.0).round();
    // Adding 0 turns -0 into 0.
    let value = if tenths.is_finite() { tenths / 10.0 + 0.0 } else { 0.0 };
    value.to_string()
}

/// Text escaped for elements and attributes of XML; characters that XML cannot represent become blanks.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
