//! Boards of squares: chequered, ruled, with holes or with crossings.

use super::{Picture, SEATS, pieces};
use crate::report::drawing::{Anchor, Drawing, SMALL};

/// Widths beside the squares.
const LEFT: f64 = 24.0;
const RIGHT: f64 = 22.0;
/// Largest side of a square.
const SIDE: f64 = 48.0;

/// The cells of a board, in rows from the top.
type Cells = Vec<Vec<char>>;

/// The ground of a board.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ground {
    /// Squares of alternating colours.
    Chequered,
    /// Squares between lines.
    Ruled,
    /// Holes in a board that stands upright.
    Holes,
    /// Crossings of lines.
    Crossings,
}

/// The appearance of a board of squares.
pub(super) struct Style {
    ground: Ground,
    /// Class of the ground.
    class: &'static str,
    /// The symbol of each seat in the text of a position.
    symbols: &'static str,
    /// The class of each seat's pieces.
    pieces: [&'static str; 6],
    /// Whether a move places a piece, and other changes are its consequences.
    places: bool,
    /// Whether row 1 is at the top.
    top_down: bool,
}

const DISCS: [&str; 6] = ["black", "white", "", "", "", ""];
const RULED: Style =
    Style { ground: Ground::Ruled, class: "felt", symbols: "", pieces: SEATS, places: true, top_down: true };

const CHESS: Style = Style {
    ground: Ground::Chequered,
    class: "wood",
    symbols: "Pp",
    pieces: ["white", "black", "", "", "", ""],
    places: false,
    top_down: false,
};

/// Reads the squares of a board.
type Read = fn(&str) -> Option<Cells>;

/// The games on squares, and how their positions are read.
const STYLES: [(&str, Style, Read); 8] = [
    ("chess", CHESS, fen),
    ("checkers", Style { symbols: "bw", pieces: DISCS, ..CHESS }, checkers),
    ("tic-tac-toe", Style { class: "sheet", symbols: "xo", top_down: false, ..RULED }, rows),
    ("othello", Style { symbols: "xo", pieces: DISCS, ..RULED }, rows),
    ("rolit", Style { class: "sheet", symbols: "rygb", ..RULED }, rows),
    ("virus", Style { class: "sheet", symbols: "012345", top_down: false, ..RULED }, rows),
    (
        "connect-four",
        Style { ground: Ground::Holes, class: "steel", symbols: "xo", top_down: false, ..RULED },
        rows,
    ),
    (
        "go",
        Style {
            ground: Ground::Crossings,
            class: "wood",
            symbols: "XO",
            pieces: DISCS,
            top_down: false,
            ..RULED
        },
        rows,
    ),
];

/// Returns the appearance of the board of a game on squares.
pub(super) fn style(game: &str) -> Option<(&'static Style, Read)> {
    STYLES.iter().find(|(name, ..)| *name == game).map(|(_, style, read)| (style, *read))
}

impl Style {
    /// Returns the number of a row, which is counted from the top.
    fn number(&self, row: usize, height: usize) -> usize {
        if self.top_down { row + 1 } else { height - row }
    }
}

/// Reads rows joined by `/`, all of the same width.
fn rows(text: &str) -> Option<Cells> {
    let rows: Cells = text.split('/').map(|row| row.chars().collect()).collect();
    let width = rows[0].len();
    ((1..=26).contains(&width) && rows.len() <= 26 && rows.iter().all(|row| row.len() == width))
        .then_some(rows)
}

/// Reads the board of a FEN.
fn fen(text: &str) -> Option<Cells> {
    let empty = |digit: char| digit.to_digit(10).map_or(1, |count| count as usize);
    let cell = |letter: char| if letter.is_ascii_digit() { '.' } else { letter };
    let row = |row: &str| row.chars().flat_map(|letter| vec![cell(letter); empty(letter)]).collect();
    let rows: Cells = text.split('/').map(row).collect();
    (rows.len() == 8 && rows.iter().all(|row| row.len() == 8)).then_some(rows)
}

/// Reads lists of numbered squares as in `W:W21,22,K9:B1,K30`; kings are capital letters.
fn checkers(text: &str) -> Option<Cells> {
    let mut cells = vec![vec!['.'; 8]; 8];
    for list in text.split(':').skip(1) {
        let colour = list.chars().next().filter(|letter| "WB".contains(*letter))?;
        for square in list[1..].split(',').filter(|square| !square.is_empty()) {
            let (king, number) = (square.starts_with('K'), square.trim_start_matches('K'));
            let index = number.parse::<usize>().ok().filter(|number| (1..=32).contains(number))? - 1;
            let row = index / 4;
            cells[row][2 * (index % 4) + 1 - row % 2] =
                if king { colour } else { colour.to_ascii_lowercase() };
        }
    }
    Some(cells)
}

impl Picture<'_> {
    /// Draws a board of squares with its pieces.
    pub(super) fn grid(&self, style: &Style, cells: &Cells, before: Option<&Cells>) -> Option<String> {
        let (width, height) = (cells[0].len(), cells.len());
        let side = ((super::WIDTH - LEFT - RIGHT) / width as f64).min(SIDE);
        let total = side * height as f64 + 22.0;
        let mut drawing = self.canvas(total);
        let corner = |column: usize, row: usize| (LEFT + side * column as f64, 4.0 + side * row as f64);
        let centre = |column: usize, row: usize| {
            let (x, y) = corner(column, row);
            (x + side / 2.0, y + side / 2.0)
        };
        drawing.rect(
            &format!("ground {}", style.class),
            corner(0, 0),
            (side * width as f64, side * height as f64),
        );
        self.ground(&mut drawing, style, (width, height), side);
        let old = |column: usize, row: usize| before?.get(row)?.get(column).copied();
        for (row, line) in cells.iter().enumerate() {
            for (column, &cell) in line.iter().enumerate() {
                let (at, middle) = (corner(column, row), centre(column, row));
                let changed = old(column, row).is_some_and(|old| old != cell);
                let placed = cell != '.' && old(column, row) == Some('.');
                let named = || format!("{}{}", self.column(column), style.number(row, height)) == self.mv;
                let chosen = !style.places || placed || named();
                if changed && chosen {
                    drawing.rect("mark", at, (side, side));
                }
                if style.ground == Ground::Holes && cell == '.' {
                    drawing.dot("hole", middle, side * 0.4);
                }
                if cell != '.' {
                    self.piece(&mut drawing, style, cell, middle, side)?;
                }
                if changed && !chosen {
                    drawing.dot("trace", middle, side * 0.11);
                }
            }
        }
        self.labels(&mut drawing, style, (width, height), side);
        let symbol = |drawing: &mut Drawing, seat: usize, at: (f64, f64)| {
            let letter = style.symbols.chars().nth(seat).unwrap_or('.');
            let _ = self.piece(drawing, style, letter, at, 20.0);
        };
        self.legend(&mut drawing, total, &symbol);
        Some(self.finish(drawing))
    }

    /// Labels the rows and columns; in checkers the rows by their first and last squares, after which moves are named.
    fn labels(&self, drawing: &mut Drawing, style: &Style, (width, height): (usize, usize), side: f64) {
        let mut label =
            |at: (f64, f64), anchor, text: String| drawing.text("quiet", at, anchor, SMALL, &text);
        let right = LEFT + side * width as f64 + 5.0;
        for row in 0..height {
            let y = 4.0 + side * (row as f64 + 0.5);
            let number = style.number(row, height);
            if self.game == "checkers" {
                label((LEFT - 5.0, y), Anchor::End, (4 * row + 1).to_string());
                label((right, y), Anchor::Start, (4 * row + 4).to_string());
            } else if side >= 15.0 || number % 2 == 1 {
                label((LEFT - 5.0, y), Anchor::End, number.to_string());
            }
        }
        let shown = |column: &usize| self.game != "checkers" && (side >= 15.0 || column.is_multiple_of(2));
        for column in (0..width).filter(shown) {
            let at = (LEFT + side * (column as f64 + 0.5), 13.0 + side * height as f64);
            label(at, Anchor::Middle, self.column(column).to_string());
        }
    }

    /// Returns the label of a column.
    fn column(&self, column: usize) -> char {
        match self.game {
            "connect-four" => char::from(b'1' + column as u8),
            "go" if column >= 8 => char::from(b'B' + column as u8),
            "go" => char::from(b'A' + column as u8),
            _ => char::from(b'a' + column as u8),
        }
    }

    /// Draws dark squares or lines.
    fn ground(&self, drawing: &mut Drawing, style: &Style, (width, height): (usize, usize), side: f64) {
        let (columns, rows) = (width as f64, height as f64);
        let at = |column: f64, row: f64| (LEFT + side * column, 4.0 + side * row);
        match style.ground {
            Ground::Chequered => {
                for row in 0..height {
                    for column in (0..width).filter(|column| (row + column) % 2 == 1) {
                        drawing.rect("dark", at(column as f64, row as f64), (side, side));
                    }
                }
            }
            Ground::Ruled => {
                for column in 1..width {
                    drawing.line("rule", at(column as f64, 0.0), at(column as f64, rows));
                }
                for row in 1..height {
                    drawing.line("rule", at(0.0, row as f64), at(columns, row as f64));
                }
            }
            Ground::Crossings => {
                for column in 0..width {
                    let x = column as f64 + 0.5;
                    drawing.line("rule", at(x, 0.5), at(x, rows - 0.5));
                }
                for row in 0..height {
                    let y = row as f64 + 0.5;
                    drawing.line("rule", at(0.5, y), at(columns - 0.5, y));
                }
            }
            Ground::Holes => {}
        }
    }

    /// Draws a piece in the middle of a square; `None` for an unknown symbol.
    fn piece(
        &self,
        drawing: &mut Drawing,
        style: &Style,
        symbol: char,
        at: (f64, f64),
        side: f64,
    ) -> Option<()> {
        if self.game == "chess" {
            let class = style.pieces[usize::from(symbol.is_lowercase())];
            let outline = pieces::outline(symbol.to_ascii_lowercase())?;
            drawing.outline(&format!("man {class}"), at, side / 23.0, outline);
            return Some(());
        }
        let king = self.game == "checkers" && symbol.is_uppercase();
        let symbol = if self.game == "checkers" { symbol.to_ascii_lowercase() } else { symbol };
        let seat = style.symbols.chars().position(|known| known == symbol)?;
        let class = style.pieces[seat];
        if self.game == "tic-tac-toe" {
            let half = side * 0.28;
            match symbol {
                'x' => {
                    for slope in [half, -half] {
                        let ends = [(at.0 - half, at.1 - slope), (at.0 + half, at.1 + slope)];
                        drawing.line(&format!("stroke {class}"), ends[0], ends[1]);
                    }
                }
                _ => drawing.dot(&format!("stroke {class}"), at, half),
            }
            return Some(());
        }
        let class = if self.game == "virus" { self.own(seat) } else { class.to_string() };
        drawing.dot(&format!("man {class}"), at, side * 0.4);
        if king {
            drawing.outline(&format!("crown {class}"), at, side / 23.0, "M-5 4H5L6-4 2.5-.5 0-5-2.5-.5-6-4Z");
        }
        Some(())
    }
}
