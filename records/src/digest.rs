//! The content digest: whether two bouts are the same in every column that makes two datasets equal.
//!
//! Not counted are `worker`, `build`, `started`, `duration_us`, `time_us`, `depth_time_us` and `overshoot_us`: what depends
//! on where and when a bout was played. The digest is a promise between builds; its text is fixed by a test, and another
//! order of fields or another framing needs another domain.

use blake3::Hasher;

use crate::rows::{BoutRows, GameRow, MoveRow, ProbeRow, SearchColumns};

/// What separates this digest from any other use of BLAKE3, and one version of it from the next.
const DOMAIN: &str = "agon bout content, version 1";

/// BLAKE3 of the columns that count, in the order of the rows.
///
/// Every number takes eight bytes, little endian; a text or a list follows its length; what may be missing follows a 0
/// or a 1. So two different bouts never feed the same bytes.
pub fn content_digest(bout: &BoutRows) -> [u8; 32] {
    let BoutRows { games, moves, probes } = bout;
    let mut content = Content(Hasher::new_derive_key(DOMAIN));
    content.list(games, Content::game);
    content.list(moves, Content::ply);
    content.list(probes, Content::probe);
    *content.0.finalize().as_bytes()
}

/// What has been fed so far. Rows are taken apart field by field, so that a new column does not compile until it is
/// decided whether it counts.
struct Content(Hasher);

impl Content {
    fn number(&mut self, number: impl Into<u64>) {
        self.0.update(&number.into().to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Content, &T)) {
        self.number(items.len() as u64);
        for item in items {
            each(self, item);
        }
    }

    fn optional<T>(&mut self, value: Option<&T>, some: impl FnOnce(&mut Content, &T)) {
        self.0.update(&[u8::from(value.is_some())]);
        if let Some(value) = value {
            some(self, value);
        }
    }

    fn game(&mut self, row: &GameRow) {
        let GameRow {
            bout,
            game,
            rules,
            variant,
            opening,
            players,
            payoffs,
            plies,
            ending,
            seed,
            worker: _,
            build: _,
            started: _,
            duration_us: _,
        } = row;
        self.number(*bout);
        self.number(*game);
        self.text(rules);
        self.text(variant);
        self.text(opening);
        self.list(players, |content, player| content.text(player));
        self.list(payoffs, |content, &payoff| content.number(i64::from(payoff).cast_unsigned()));
        self.number(*plies);
        self.text(ending);
        self.number(*seed);
    }

    fn ply(&mut self, row: &MoveRow) {
        let MoveRow { bout, game, ply, seat, mv, legal, search } = row;
        self.number(*bout);
        self.number(*game);
        self.number(*ply);
        self.optional(seat.as_ref(), |content, &seat| content.number(seat));
        self.text(mv);
        self.number(*legal);
        self.optional(search.as_ref(), Content::search);
    }

    fn search(&mut self, columns: &SearchColumns) {
        let SearchColumns {
            player,
            depth,
            selective_depth,
            nodes,
            leaves,
            quiescence_nodes,
            cutoffs,
            first_move_cutoffs,
            table_probes,
            table_hits,
            table_stores,
            researches,
            simulations,
            tree_nodes,
            playout_plies,
            depth_nodes,
            depth_time_us: _,
            score,
            pv,
            time_us: _,
            overshoot_us: _,
            limit_kind,
            limit_value,
        } = columns;
        self.text(player);
        self.number(*depth);
        self.number(*selective_depth);
        for counter in [
            nodes,
            leaves,
            quiescence_nodes,
            cutoffs,
            first_move_cutoffs,
            table_probes,
            table_hits,
            table_stores,
            researches,
            simulations,
            tree_nodes,
            playout_plies,
        ] {
            self.number(*counter);
        }
        self.list(depth_nodes, |content, &nodes| content.number(nodes));
        self.number(score.to_bits());
        self.text(pv);
        self.text(limit_kind.name());
        self.number(*limit_value);
    }

    fn probe(&mut self, row: &ProbeRow) {
        let ProbeRow { position, moves, decision } = row;
        self.text(position);
        self.text(moves);
        self.ply(decision);
    }
}
