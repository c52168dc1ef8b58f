//! The columns that make two datasets equal, by name, with their values as texts that differ wherever values do.

use agon_records::counted;
use agon_records::{GameRow, MoveRow, ProbeRow};

/// Columns with their values, in the order of the table.
pub(crate) type Columns = Vec<(&'static str, String)>;

/// The columns of a game.
pub(crate) fn of_game(row: &GameRow) -> Columns {
    let mut listed = Listed::default();
    counted::game(row, &mut listed);
    listed.0
}

/// The columns of a ply.
pub(crate) fn of_move(row: &MoveRow) -> Columns {
    let mut listed = Listed::default();
    counted::ply(row, &mut listed);
    listed.0
}

/// The columns of a search of a probe.
pub(crate) fn of_probe(row: &ProbeRow) -> Columns {
    let mut listed = Listed::default();
    counted::probe(row, &mut listed);
    listed.0
}

#[derive(Default)]
struct Listed(Columns);

impl Listed {
    /// Texts are quoted, so that none can be taken for a number or for null; the debug form of a number with a fraction is
    /// the shortest that reads back as the same bits.
    fn push(&mut self, column: &'static str, value: impl std::fmt::Debug) {
        self.0.push((column, format!("{value:?}")));
    }
}

impl counted::Columns for Listed {
    fn number(&mut self, column: &'static str, number: u64) {
        self.push(column, number);
    }

    fn text(&mut self, column: &'static str, text: &str) {
        self.push(column, text);
    }

    fn score(&mut self, column: &'static str, score: f64) {
        self.push(column, score);
    }

    fn texts(&mut self, column: &'static str, texts: &[String]) {
        self.push(column, texts);
    }

    fn numbers(&mut self, column: &'static str, numbers: &[u64]) {
        self.push(column, numbers);
    }

    fn payoffs(&mut self, column: &'static str, payoffs: &[i32]) {
        self.push(column, payoffs);
    }

    fn present(&mut self, column: &'static str, present: bool) {
        if !present {
            self.0.push((column, "null".to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use agon_records::schema::UNCOUNTED;
    use agon_records::{LimitKind, SearchColumns, Table};

    use super::*;

    fn probe() -> ProbeRow {
        let search = SearchColumns {
            player: "a".to_string(),
            depth: 1,
            selective_depth: 2,
            nodes: 3,
            leaves: 4,
            quiescence_nodes: 5,
            cutoffs: 6,
            first_move_cutoffs: 7,
            table_probes: 8,
            table_hits: 9,
            table_stores: 10,
            researches: 11,
            simulations: 12,
            tree_nodes: 13,
            playout_plies: 14,
            depth_nodes: vec![15],
            depth_time_us: vec![16],
            score: 0.0,
            pv: "b".to_string(),
            time_us: 17,
            overshoot_us: 18,
            limit_kind: LimitKind::Nodes,
            limit_value: 19,
        };
        let decision = MoveRow {
            bout: 0,
            game: 0,
            ply: 0,
            seat: None,
            mv: "b".to_string(),
            legal: 1,
            search: Some(search),
        };
        ProbeRow { position: String::new(), moves: String::new(), decision }
    }

    #[test]
    fn every_column_that_counts_is_compared() {
        let names = |columns: Columns| columns.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let counted = |table: Table| {
            table
                .columns()
                .map(|column| column.name)
                .filter(|name| !UNCOUNTED.contains(name))
                .collect::<Vec<_>>()
        };
        let game = GameRow {
            bout: 0,
            game: 0,
            rules: String::new(),
            variant: String::new(),
            opening: String::new(),
            players: vec![],
            payoffs: vec![],
            plies: 0,
            ending: String::new(),
            seed: 0,
            worker: String::new(),
            build: String::new(),
            started: 0,
            duration_us: 0,
            speed_factor: 1.0,
            settings: Vec::new(),
        };
        assert_eq!(names(of_game(&game)), counted(Table::Games));
        assert_eq!(names(of_probe(&probe())), counted(Table::Probes));
        assert_eq!(names(of_move(&probe().decision)), counted(Table::Moves));
    }

    #[test]
    fn zeros_with_different_signs_differ() {
        let mut other = probe();
        other.decision.search.as_mut().unwrap().score = -0.0;
        assert_ne!(of_probe(&probe()), of_probe(&other));
    }
}
