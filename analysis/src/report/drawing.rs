//! An SVG image under construction: lines, shapes and texts with classes of the style sheet.

use std::fmt::Write as _;

use super::html::{escape, fitted, text_width};
use crate::format::fixed;

/// Font sizes of names and of small text. A chart is as wide as a phone's page, so these are pixels there; the style sheet
/// reduces them where a chart is wider.
pub(super) const LETTER: f64 = 14.0;
pub(super) const SMALL: f64 = 12.5;

/// The point of a text that is at its coordinates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// An image of a fixed size.
pub(super) struct Drawing {
    width: f64,
    height: f64,
    body: String,
}

impl Drawing {
    pub(super) fn new(width: f64, height: f64) -> Drawing {
        Drawing { width, height, body: String::new() }
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(|number| fixed(number, 1));
        let _ =
            write!(self.body, "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>");
    }

    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let [x, y, width, height] = [x, y, width, height].map(|number| fixed(number, 1));
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }

    pub(super) fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let [x, y, radius] = [x, y, radius].map(|number| fixed(number, 1));
        let _ = write!(self.body, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>");
    }

    /// Draws a line through points, or an area if closed.
    pub(super) fn path(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>, closed: bool) {
        let mut path = String::new();
        for (x, y) in points {
            let step = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{step}{} {}", fixed(x, 1), fixed(y, 1));
        }
        let end = if closed { "Z" } else { "" };
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{path}{end}\"/>");
    }

    /// Draws an outline given in units of `scale` around `centre`.
    pub(super) fn outline(&mut self, class: &str, centre: (f64, f64), scale: f64, outline: &str) {
        let [x, y] = [centre.0, centre.1].map(|number| fixed(number, 1));
        let _ = write!(
            self.body,
            "<path class=\"{class}\" transform=\"translate({x} {y}) scale({})\" d=\"{outline}\"/>",
            fixed(scale, 3)
        );
    }

    /// Draws text vertically centred at `y`; moves or cuts it to stay within the frame.
    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, size: f64, text: &str) {
        let text = fitted(text, (self.width - 2.0) / size);
        let width = text_width(&text) * size;
        let (name, before) = match anchor {
            Anchor::Start => ("start", 0.0),
            Anchor::Middle => ("middle", width / 2.0),
            Anchor::End => ("end", width),
        };
        let x = x.clamp(before + 1.0, (self.width - 1.0 - (width - before)).max(before + 1.0));
        let y = y.clamp(size * 0.6, self.height - size * 0.6);
        let small = if size < LETTER { " small" } else { "" };
        let _ = write!(
            self.body,
            "<text class=\"{class}{small}\" x=\"{}\" y=\"{}\" text-anchor=\"{name}\">{}</text>",
            fixed(x, 1),
            fixed(y + size * 0.35, 1),
            escape(&text)
        );
    }

    pub(super) fn finish(self, alternative: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>",
            fixed(self.width, 0),
            fixed(self.height, 0),
            escape(alternative),
            self.body
        )
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns all values of an attribute.
    fn numbers(svg: &str, attribute: &str) -> Vec<f64> {
        let key = format!(" {attribute}=\"");
        svg.split(&key).skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
    }

    /// Checks that everything is within the frame and no two texts touch.
    pub(in crate::report) fn check_frame(svg: &str) {
        let frame = svg.split("viewBox=\"0 0 ").nth(1).unwrap().split('"').next().unwrap();
        let (width, height) = frame.split_once(' ').unwrap();
        let (width, height): (f64, f64) = (width.parse().unwrap(), height.parse().unwrap());
        for (attributes, most) in [(["x", "x1", "x2", "cx"], width), (["y", "y1", "y2", "cy"], height)] {
            for attribute in attributes {
                for number in numbers(svg, attribute) {
                    assert!((0.0..=most).contains(&number), "{attribute}={number} of {most}: {svg}");
                }
            }
        }
        // Outlines are given in units of a transformation.
        for path in svg.split("<path ").skip(1).filter(|path| !path.contains("transform")) {
            let path = path.split(" d=\"").nth(1).unwrap();
            let path = path.split('"').next().unwrap().replace(['M', 'L', 'Z'], " ");
            let path: Vec<f64> = path.split_whitespace().map(|number| number.parse().unwrap()).collect();
            for point in path.chunks(2) {
                assert!((0.0..=width).contains(&point[0]) && (0.0..=height).contains(&point[1]), "{point:?}");
            }
        }
        let mut boxes: Vec<(f64, f64, f64, f64, String)> = Vec::new();
        for text in svg.split("<text ").skip(1) {
            let (head, rest) = text.split_once('>').unwrap();
            let words = rest.split('<').next().unwrap().to_string();
            let size = if head.contains(" small\"") { SMALL } else { LETTER };
            let head = format!(" {head}");
            let (x, y) = (numbers(&head, "x")[0], numbers(&head, "y")[0]);
            let wide = text_width(&words) * size;
            let from = if head.contains("\"middle\"") {
                x - wide / 2.0
            } else if head.contains("\"end\"") {
                x - wide
            } else {
                x
            };
            assert!(from >= -0.1 && from + wide <= width + 0.1, "{words} from {from} for {wide}");
            let one = (from, from + wide, y - size * 0.8, y + size * 0.2, words);
            for other in &boxes {
                let touch = one.0 < other.1 && other.0 < one.1 && one.2 < other.3 && other.2 < one.3;
                assert!(!touch, "{one:?} touches {other:?}");
            }
            boxes.push(one);
        }
        for word in ["NaN", "inf"] {
            assert!(!svg.contains(word), "{svg}");
        }
    }
}
