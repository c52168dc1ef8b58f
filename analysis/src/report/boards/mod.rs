//! Drawn boards: squares, pieces, discs, stones, pits, points and dice, with the last move marked.
//!
//! A board is drawn from the text of its position, and the last move is the difference to the position before it, so that no
//! drawing knows the rules. A game without a drawing here is shown as text.

mod grid;
mod pieces;
mod special;

use super::drawing::{Anchor, Drawing, LETTER};

/// Width of every board.
const WIDTH: f64 = 320.0;
/// Height of a line of the legend.
const LINE: f64 = 20.0;

/// Classes of the seats' colours.
const SEATS: [&str; 6] = ["t0", "t1", "t2", "t3", "t4", "t5"];

/// Draws the symbol of a seat around a point.
type Symbol<'a> = dyn Fn(&mut Drawing, usize, (f64, f64)) + 'a;

/// A position to draw.
pub(super) struct Picture<'a> {
    /// Name of the game.
    pub game: &'a str,
    /// The position before the last move.
    pub before: &'a str,
    /// The last move.
    pub mv: &'a str,
    /// The position.
    pub position: &'a str,
    /// For each seat, the name of its player and the class of its colour.
    pub seats: &'a [(String, String)],
}

impl Picture<'_> {
    /// Draws the board with a legend of the seats; `None` for a game or a position without a drawing.
    pub(super) fn draw(&self) -> Option<String> {
        let (fields, before) = (words(self.position), words(self.before));
        let (board, old) = (*fields.first()?, before.first().copied().unwrap_or_default());
        let Some((style, read)) = grid::style(self.game) else { return self.special(&fields, &before) };
        self.grid(style, &read(board)?, read(old).as_ref())
    }

    /// Starts a drawing of a board of some height, with space for the legend below it.
    fn canvas(&self, height: f64) -> Drawing {
        Drawing::new(WIDTH, height + 6.0 + LINE * self.seats.len().div_ceil(2) as f64)
    }

    /// Draws the symbol and the player of each seat below the board.
    fn legend(&self, drawing: &mut Drawing, height: f64, symbol: &Symbol<'_>) {
        for (seat, (name, class)) in self.seats.iter().enumerate() {
            let x = if seat % 2 == 0 { 10.0 } else { WIDTH / 2.0 + 10.0 };
            let y = height + 6.0 + LINE * ((seat / 2) as f64 + 0.5);
            symbol(drawing, seat, (x, y));
            let name = super::html::fitted(name, (WIDTH / 2.0 - 30.0) / LETTER);
            drawing.text(&format!("label {class}"), (x + 14.0, y), Anchor::Start, LETTER, &name);
        }
    }

    /// Returns the class of a seat's pieces in a game whose pieces have no colours of their own: that of its player, unless
    /// a player has several seats.
    fn own(&self, seat: usize) -> String {
        let mut classes: Vec<&str> = self.seats.iter().map(|(_, class)| class.as_str()).collect();
        classes.sort_unstable();
        match self.seats.get(seat) {
            Some((_, class)) if classes.windows(2).all(|pair| pair[0] != pair[1]) => format!("own {class}"),
            _ => SEATS[seat % SEATS.len()].to_string(),
        }
    }

    fn finish(&self, drawing: Drawing) -> String {
        drawing.finish(&format!("{} board after {}; the position is {}", self.game, self.mv, self.position))
    }
}

/// Splits a position into its fields.
fn words(position: &str) -> Vec<&str> {
    position.split(' ').collect()
}

#[cfg(test)]
mod tests {
    use agon_games::random::{below, seeded};
    use agon_games::{GAMES, GameSpec, Turn};

    use super::*;

    /// Draws random positions of every game with every number of seats: each has a drawing within its frame, and marks what
    /// the last move changed.
    #[test]
    fn every_game_is_drawn() {
        for info in GAMES {
            for &seats in info.seats {
                let text = match info.seats.len() {
                    1 => info.name.to_string(),
                    _ => format!("{}:seats={seats}", info.name),
                };
                let legend: Vec<(String, String)> =
                    (0..seats).map(|seat| (format!("player-{seat}"), format!("s{seat}"))).collect();
                let mut position = GameSpec::parse(&text).unwrap().start(None).unwrap();
                let mut random = seeded(u64::from(seats));
                let mut marked = 0;
                for ply in 1..60 {
                    let before = position.position();
                    let mv = match position.turn() {
                        Turn::Over => break,
                        Turn::Chance => position.draw(&mut random),
                        Turn::Player(_) => {
                            let legal = position.legal();
                            let mv = legal[below(&mut random, legal.len())].clone();
                            position.play(ply, &mv).unwrap()
                        }
                    };
                    let after = position.position();
                    let picture = Picture {
                        game: info.name,
                        before: &before,
                        mv: &mv,
                        position: &after,
                        seats: &legend,
                    };
                    let svg = picture.draw().unwrap_or_else(|| panic!("{text}: {after} is not drawn"));
                    crate::report::drawing::tests::check_frame(&svg);
                    marked += usize::from(svg.contains("\"mark"));
                    assert!(svg.contains("player-0"), "{svg}");
                }
                assert!(marked > 2, "{text}: only {marked} positions have a marked move");
            }
        }
    }

    /// Pieces that are told apart by their colours only have those of the charts.
    #[test]
    fn pieces_have_the_colours_of_their_players() {
        let draw = |classes: [&str; 4]| {
            let seats: Vec<(String, String)> =
                classes.iter().map(|class| (format!("player-{class}"), class.to_string())).collect();
            let position = "0123/..../..../.... 0 4";
            let picture = Picture { game: "virus", before: position, mv: "a1", position, seats: &seats };
            picture.draw().unwrap()
        };
        let svg = draw(["s3", "s0", "s1", "s2"]);
        for class in ["s0", "s1", "s2", "s3"] {
            assert_eq!(svg.matches(&format!("\"man own {class}\"")).count(), 2, "board and legend: {svg}");
        }
        let svg = draw(["s1", "s0", "s0", "s0"]);
        assert!(svg.contains("\"man t0\"") && svg.contains("\"man t3\""), "one player in three seats: {svg}");
    }

    #[test]
    fn unknown_games_and_damaged_positions_are_not_drawn() {
        let picture = |game, position| {
            Picture { game, before: position, mv: "a1", position, seats: &[] }.draw().is_some()
        };
        assert!(picture("tic-tac-toe", ".../.x./... o"));
        for (game, position) in [
            ("hex", ".../.x./... o"),
            ("tic-tac-toe", ""),
            ("tic-tac-toe", ".../.x o"),
            ("chess", "9/8/8/8/8/8/8/8 w - - 0 1"),
            ("checkers", "W:W33:B1 0"),
            ("backgammon", "24:2 x x - 0"),
            ("kalah", "1,x:0 1,1:0 0"),
            ("nim", "3-x 0"),
            ("pig", "1 2"),
            ("chinese-checkers", "A/AA 0 0"),
            ("focus", "A,./. A 0,0 - 0"),
        ] {
            assert!(!picture(game, position), "{game} {position}");
        }
    }
}
