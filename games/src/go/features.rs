//! The features of the linear evaluation, in points.

use super::Go;
use super::board::{BLACK, WHITE, point_at};
use super::rows::Field;
use crate::game::{Feature, FeatureSet, Features, Seat, features, sign};

/// The steps that a stone's influence reaches.
const REACH: u32 = 5;

features! {
    STONES = "stones", 1.0, "stones on the board";
    TERRITORY = "territory", 0.2, "empty points in regions that touch no other stones";
    INFLUENCE = "influence", 0.6, "empty points reached in fewer steps than by the other side, up to five";
    LIBERTIES = "liberties", 0.05, "empty points next to own stones";
    ATARI = "atari", -0.8, "own stones in chains with one liberty";
    HANGING = "hanging", 0.8, "stones of the other side in atari where the mover can capture them";
    CHAINS = "chains", -0.5, "chains, of which fewer are better connected";
    EYES = "eyes", 0.3, "single-point eyes";
    EDGE = "edge", -0.5, "stones on the outermost line";
    KOMI = "komi", 0.5, "half points of komi: White's gain, Black's loss";
}

impl Features for Go {
    const FEATURES: &'static [Feature] = FEATURES;

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let (board, sign) = (&self.board, sign(seat == Seat::FIRST));
        let mut set = |index: usize, [black, white]: [i32; 2]| values[index] = sign * (black - white);
        set(STONES, board.totals().stones.map(i32::from));
        set(KOMI, [0, self.komi]);

        let looks_at_empties = FeatureSet::NONE.with(ATARI).with(HANGING).with(EYES);
        if wanted.any(looks_at_empties) {
            let (mut atari, mut eyes) = ([0; 2], [0; 2]);
            for &point in board.empties() {
                for colour in [BLACK, WHITE] {
                    let side = usize::from(colour - 1);
                    atari[side] += i32::from(board.stones_in_atari(point, colour));
                    eyes[side] += i32::from(board.is_eye(point, colour));
                }
            }
            let mut hanging = atari;
            hanging.swap(0, 1);
            hanging[self.clock.mover.other().index()] = 0;
            set(ATARI, atari);
            set(HANGING, hanging);
            set(EYES, eyes);
        }

        let looks_at_rows =
            FeatureSet::NONE.with(TERRITORY).with(INFLUENCE).with(LIBERTIES).with(CHAINS).with(EDGE);
        if !wanted.any(looks_at_rows) {
            return;
        }
        let field = Field::of(board);
        if wanted.has(TERRITORY) {
            set(TERRITORY, field.territory().map(|points| points.count()));
        }
        if wanted.has(INFLUENCE) {
            set(INFLUENCE, field.reached_first(REACH).map(|points| points.count()));
        }
        if wanted.has(LIBERTIES) {
            set(LIBERTIES, field.stones.map(|stones| stones.neighbours_in(&field.empty).count()));
        }
        if wanted.has(CHAINS) {
            set(
                CHAINS,
                field.stones.map(|stones| {
                    stones.points().filter(|&(row, column)| board.is_head(point_at(row, column))).count()
                        as i32
                }),
            );
        }
        if wanted.has(EDGE) {
            set(EDGE, field.stones.map(|stones| stones.count_on_edge(board.size())));
        }
    }
}
