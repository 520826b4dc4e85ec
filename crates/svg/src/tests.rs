//! Documents are read back by a small, strict XML reader.
//!
//! Invariant: the reader accepts no more than XML allows: elements that nest, attributes in quotes, known entities.

use proptest::prelude::*;

use super::*;

/// An element read back.
#[derive(Debug, Default)]
struct Read {
    tag: String,
    attributes: Vec<(String, String)>,
    text: String,
    children: Vec<Read>,
}

impl Read {
    fn attribute(&self, name: &str) -> &str {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        found.map_or_else(|| panic!("{name} of {self:?}"), |(_, value)| value)
    }
}

fn unescaped(text: &str) -> String {
    assert!(!text.contains(['<', '>', '"']), "{text:?}");
    assert!(text.chars().all(|c| !c.is_control() || c == '\n'), "{text:?}");
    let mut parts = text.split('&');
    let mut plain = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (entity, rest) = part.split_once(';').expect("an entity ends");
        plain.push(match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            other => panic!("unknown entity {other:?}"),
        });
        plain.push_str(rest);
    }
    plain
}

/// Reads one element; returns it and what follows.
fn read(text: &str) -> (Read, &str) {
    let (open, mut rest) = text.strip_prefix('<').unwrap().split_once('>').unwrap();
    let (open, is_empty) = open.strip_suffix('/').map_or((open, false), |open| (open, true));
    let (tag, mut attributes) = open.split_once(' ').unwrap_or((open, ""));
    let mut element = Read { tag: tag.to_string(), ..Read::default() };
    while !attributes.is_empty() {
        let (name, value) = attributes.split_once("=\"").unwrap();
        let (value, more) = value.split_once('"').unwrap();
        assert!(element.attributes.iter().all(|(known, _)| known != name), "{name} twice: {open}");
        element.attributes.push((name.to_string(), unescaped(value)));
        attributes = more.trim_start();
    }
    let end = format!("</{tag}>");
    if is_empty {
        return (element, rest);
    }
    loop {
        let (text, after) = rest.split_at(rest.find('<').expect("an end"));
        // A style sheet has its own syntax, and no XML markup.
        element.text += &if tag == "style" { text.to_string() } else { unescaped(text) };
        if let Some(after) = after.strip_prefix(end.as_str()) {
            return (element, after);
        }
        let (child, after) = read(after);
        element.children.push(child);
        rest = after;
    }
}

fn document(elements: Vec<Element>) -> Read {
    let mut document = Document::new((800.0, 100.5), "a <title>", "text { fill: #222222 }\n");
    elements.into_iter().for_each(|element| document.add(element));
    // The mark by which fiord knows its own files.
    let text = document.finish().replacen("<!-- Made by fiord -->\n", "", 1);
    let (root, rest) = read(&text);
    assert_eq!(rest, "\n");
    root
}

#[test]
fn a_document_has_its_size_its_title_and_its_style() {
    let root = document(Vec::new());
    assert_eq!((root.tag.as_str(), root.attribute("viewBox")), ("svg", "0 0 800 100.5"));
    assert_eq!((root.attribute("width"), root.attribute("height")), ("800", "100.5"));
    let children: Vec<(&str, &str)> =
        root.children.iter().map(|child| (child.tag.as_str(), child.text.as_str())).collect();
    assert_eq!(children, [("title", "a <title>"), ("style", "\ntext { fill: #222222 }\n")]);
}

#[test]
fn each_shape_is_at_its_position() {
    let root = document(vec![
        Element::rectangle((1.0, 2.0), (3.0, 4.04)).class("held"),
        Element::line((1.0, 2.0), (3.0, 4.0)),
        Element::polyline([(0.0, 1.26), (2.0, 3.0)]),
        Element::circle((5.0, 6.0), 4.0).tooltip("8 threads"),
        Element::text((7.0, 8.0), Anchor::End, "x"),
        Element::path(
            &Path::from((1.0, 2.0)).horizontal_to(3.0).vertical_to(4.5).line_by((-1.0, 2.0)).close(),
        ),
    ]);
    let of = |index: usize, names: &[&str]| -> Vec<String> {
        let element = &root.children[2 + index];
        names.iter().map(|name| element.attribute(name).to_string()).collect()
    };
    assert_eq!(of(0, &["x", "y", "width", "height", "class"]), ["1", "2", "3", "4", "held"]);
    assert_eq!(of(1, &["x1", "y1", "x2", "y2"]), ["1", "2", "3", "4"]);
    assert_eq!(of(2, &["points", "fill"]), ["0,1.3 2,3", "none"]);
    assert_eq!(of(3, &["cx", "cy", "r"]), ["5", "6", "4"]);
    assert_eq!(root.children[5].children[0].text, "8 threads");
    assert_eq!(of(4, &["x", "y", "text-anchor"]), ["7", "8", "end"]);
    assert_eq!(of(5, &["d"]), ["M1 2H3V4.5l-1 2z"]);
}

#[test]
fn numbers_are_short_and_finite() {
    let numbers = [1.0, -0.04, 12.34, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(number);
    assert_eq!(numbers[..3], ["1", "0", "12.3"]);
    assert_eq!(numbers[3].parse(), Ok(1e300));
    assert_eq!(numbers[4..], ["0", "0", "0"]);
}

proptest! {
    /// Every text is read back unchanged, except for characters that XML cannot represent.
    #[test]
    fn every_text_is_read_back(text in any::<String>()) {
        let root = document(vec![
            Element::text((0.0, 0.0), Anchor::Start, &text).set("data-name", &text),
            Element::circle((0.0, 0.0), 1.0).tooltip(&text),
        ]);
        let is_kept = |c: char| !c.is_control() && c != '\u{fffe}' && c != '\u{ffff}';
        let expected: String = text.chars().map(|c| if is_kept(c) { c } else { ' ' }).collect();
        prop_assert_eq!(&root.children[2].text, &expected);
        prop_assert_eq!(root.children[2].attribute("data-name"), &expected);
        prop_assert_eq!(&root.children[3].children[0].text, &expected);
    }

    #[test]
    fn every_number_gives_a_valid_document(value in any::<f64>()) {
        let root = document(vec![Element::circle((value, value), value)]);
        prop_assert!(root.children[2].attribute("cx").parse::<f64>().is_ok_and(f64::is_finite));
    }
}
