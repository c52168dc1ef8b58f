//! The terms of the evaluation, in points.

use super::Go;
use super::board::{BLACK, WHITE, point_at};
use super::rows::Field;
use crate::game::{Feature, FeatureSet, Features, Seat};

const STONES: usize = 0;
const TERRITORY: usize = 1;
const INFLUENCE: usize = 2;
const LIBERTIES: usize = 3;
const ATARI: usize = 4;
const HANGING: usize = 5;
const CHAINS: usize = 6;
const EYES: usize = 7;
const EDGE: usize = 8;
const KOMI: usize = 9;

/// How far a stone's influence reaches.
const REACH: u32 = 5;

impl Features for Go {
    const FEATURES: &'static [Feature] = &[
        Feature { name: "stones", weight: 1.0, about: "stones on the board" },
        Feature {
            name: "territory",
            weight: 0.2,
            about: "empty points in regions that touch no other stones",
        },
        Feature { name: "influence", weight: 0.6, about: "empty points reached in fewer steps, up to five" },
        Feature { name: "liberties", weight: 0.05, about: "empty points next to own stones" },
        Feature { name: "atari", weight: -0.8, about: "own stones in chains with one liberty" },
        Feature {
            name: "hanging",
            weight: 0.8,
            about: "stones of the other side in atari where the mover can capture them",
        },
        Feature { name: "chains", weight: -0.5, about: "chains: fewer are better connected" },
        Feature { name: "eyes", weight: 0.3, about: "single-point eyes" },
        Feature { name: "edge", weight: -0.5, about: "stones on the outermost line" },
        Feature { name: "komi", weight: 0.5, about: "half points of komi: White's gain, Black's loss" },
    ];

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let sign = if seat == Seat::FIRST { 1 } else { -1 };
        let board = &self.board;
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
