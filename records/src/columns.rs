//! Plies column by column: what a bout is on its way from the wire to the dataset.
//!
//! [Rows](crate::rows) own their texts and lists, which is convenient and costs more for each ply than everything else
//! that is done with it on that way. Here the plies of a bout lie in a few vectors, as the wire brings them and as
//! Parquet takes them. Columns of searches have an entry for each ply that was searched and none for the others, so that
//! no ply has half a search.

use crate::rows::{BoutRows, GameRow, LimitKind, MoveRow, ProbeRow, SearchColumns};

/// A bout whose plies are columns. Probes are few and stay rows.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct BoutColumns {
    /// One row a game.
    pub games: Vec<GameRow>,
    /// The plies of all games.
    pub moves: Plies,
    /// One row a search of the position.
    pub probes: Vec<ProbeRow>,
}

/// Plies in the order of their keys. Every column has as many entries as there are plies.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Plies {
    /// The bouts that they belong to.
    pub bout: Vec<u64>,
    /// The games within their bouts.
    pub game: Vec<u16>,
    /// How many plies came before.
    pub ply: Vec<u16>,
    /// The seats that moved; none for chance.
    pub seat: Vec<Option<u16>>,
    /// The moves in words.
    pub mv: Texts,
    /// How many moves were legal.
    pub legal: Vec<u16>,
    /// Whether there was a search: none for chance and in the opening.
    pub searched: Vec<bool>,
    /// The searches, one for each ply that was searched.
    pub searches: Searches,
}

/// What searches leave behind. Every column has as many entries as there are searches; they are those of
/// [`SearchColumns`].
#[derive(Clone, PartialEq, Default, Debug)]
#[allow(missing_docs, reason = "each is the column of the field of the same name, which says what it is")]
pub struct Searches {
    /// The names that players are numbers of, in the order in which they first searched.
    pub names: Vec<String>,
    /// The players by their numbers here.
    pub player: Vec<u16>,
    pub depth: Vec<u16>,
    pub selective_depth: Vec<u16>,
    pub nodes: Vec<u64>,
    pub leaves: Vec<u64>,
    pub quiescence_nodes: Vec<u64>,
    pub cutoffs: Vec<u64>,
    pub first_move_cutoffs: Vec<u64>,
    pub table_probes: Vec<u64>,
    pub table_hits: Vec<u64>,
    pub table_stores: Vec<u64>,
    pub researches: Vec<u64>,
    pub simulations: Vec<u64>,
    pub tree_nodes: Vec<u64>,
    pub playout_plies: Vec<u64>,
    pub depth_nodes: Lists,
    pub depth_time_us: Lists,
    pub score: Vec<f64>,
    pub pv: Texts,
    pub time_us: Vec<u64>,
    pub overshoot_us: Vec<u64>,
    pub limit_kind: Vec<LimitKind>,
    pub limit_value: Vec<u64>,
}

/// Texts behind each other.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Texts {
    /// Where each ends.
    ends: Vec<u32>,
    text: String,
}

/// Lists of numbers behind each other.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Lists {
    /// Where each ends.
    ends: Vec<u32>,
    values: Vec<u64>,
}

/// What the rules look at in a ply, whether it is a row or lies in columns.
#[derive(Clone, Copy, Debug)]
pub struct PlyView<'a> {
    /// How many plies came before it.
    pub ply: u16,
    /// The seat that moved; none for chance.
    pub seat: Option<u16>,
    /// The move in words.
    pub mv: &'a str,
    /// How many moves were legal.
    pub legal: u16,
    /// The search; none for chance and in the opening.
    pub search: Option<SearchView<'a>>,
}

/// What the rules look at in a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchView<'a> {
    /// The name of the player who searched.
    pub player: &'a str,
    /// The last completed depth.
    pub depth: u16,
    /// Positions entered.
    pub nodes: u64,
    /// Playouts or descents.
    pub simulations: u64,
    /// How many depths have nodes, and how many have a time.
    pub depths: [usize; 2],
    /// The value for the seat that moves.
    pub score: f64,
    /// What was limited.
    pub limit_kind: LimitKind,
    /// The limit.
    pub limit_value: u64,
}

fn end(length: usize) -> u32 {
    u32::try_from(length).expect("columns are written long before they have four gigabytes")
}

impl Texts {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds one.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(end(self.text.len()));
    }

    /// The text of this number, which must be there.
    pub fn get(&self, index: usize) -> &str {
        let first = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[first as usize..self.ends[index] as usize]
    }

    /// All of them, one behind the other, and where each ends.
    pub(crate) fn parts(&self) -> (&str, &[u32]) {
        (&self.text, &self.ends)
    }
}

impl Lists {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds one.
    pub fn push(&mut self, list: &[u64]) {
        self.values.extend_from_slice(list);
        self.ends.push(end(self.values.len()));
    }

    /// The list of this number, which must be there.
    pub fn get(&self, index: usize) -> &[u64] {
        let first = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.values[first as usize..self.ends[index] as usize]
    }

    /// How long each is.
    pub fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).map(|index| self.get(index).len())
    }

    /// The values of all of them, one behind the other.
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// All of them, one behind the other, and where each ends.
    pub(crate) fn parts(&self) -> (&[u64], &[u32]) {
        (&self.values, &self.ends)
    }

    /// Adds lists of these lengths, whose values lie one behind the other.
    pub fn extend(&mut self, values: &[u64], lengths: impl Iterator<Item = usize>) {
        let mut last = self.values.len();
        self.values.extend_from_slice(values);
        self.ends.extend(lengths.map(|length| {
            last += length;
            end(last)
        }));
        debug_assert_eq!(last, self.values.len(), "the lengths are those of the values");
    }
}

impl Plies {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.searched.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.searched.is_empty()
    }

    /// Makes room for so many more.
    pub fn reserve(&mut self, plies: usize) {
        let Plies { bout, game, ply, seat, mv, legal, searched, searches } = self;
        bout.reserve(plies);
        for column in [game, ply, legal] {
            column.reserve(plies);
        }
        seat.reserve(plies);
        mv.ends.reserve(plies);
        searched.reserve(plies);
        searches.reserve(plies);
    }

    /// Adds a row.
    pub fn push(&mut self, row: &MoveRow) {
        let MoveRow { bout, game, ply, seat, mv, legal, search } = row;
        self.bout.push(*bout);
        self.game.push(*game);
        self.ply.push(*ply);
        self.seat.push(*seat);
        self.mv.push(mv);
        self.legal.push(*legal);
        self.searched.push(search.is_some());
        if let Some(search) = search {
            self.searches.push(search);
        }
    }

    /// The plies as rows.
    pub fn rows(&self) -> Vec<MoveRow> {
        let mut searches = 0..;
        let row = |(place, searched): (usize, &bool)| MoveRow {
            bout: self.bout[place],
            game: self.game[place],
            ply: self.ply[place],
            seat: self.seat[place],
            mv: self.mv.get(place).to_string(),
            legal: self.legal[place],
            search: if *searched { searches.next().map(|index| self.searches.row(index)) } else { None },
        };
        self.searched.iter().enumerate().map(row).collect()
    }

    /// The plies as the rules look at them.
    pub fn views(&self) -> impl ExactSizeIterator<Item = PlyView<'_>> {
        let mut searches = 0..;
        self.searched.iter().enumerate().map(move |(place, &searched)| PlyView {
            ply: self.ply[place],
            seat: self.seat[place],
            mv: self.mv.get(place),
            legal: self.legal[place],
            search: if searched { searches.next().map(|index| self.searches.view(index)) } else { None },
        })
    }
}

impl<'a> FromIterator<&'a MoveRow> for Plies {
    fn from_iter<I: IntoIterator<Item = &'a MoveRow>>(rows: I) -> Plies {
        let mut plies = Plies::default();
        rows.into_iter().for_each(|row| plies.push(row));
        plies
    }
}

impl Searches {
    /// The number of a name here, which is given one where it has none.
    pub fn number(&mut self, name: &str) -> u16 {
        let known = self.names.iter().position(|known| known == name);
        let number = known.unwrap_or_else(|| {
            self.names.push(name.to_string());
            self.names.len() - 1
        });
        u16::try_from(number).expect("a run has at most a thousand players")
    }

    fn reserve(&mut self, searches: usize) {
        for column in [&mut self.player, &mut self.depth, &mut self.selective_depth] {
            column.reserve(searches);
        }
        let numbers = [
            &mut self.nodes,
            &mut self.leaves,
            &mut self.quiescence_nodes,
            &mut self.cutoffs,
            &mut self.first_move_cutoffs,
            &mut self.table_probes,
            &mut self.table_hits,
            &mut self.table_stores,
            &mut self.researches,
            &mut self.simulations,
            &mut self.tree_nodes,
            &mut self.playout_plies,
            &mut self.time_us,
            &mut self.overshoot_us,
            &mut self.limit_value,
        ];
        for column in numbers {
            column.reserve(searches);
        }
        self.score.reserve(searches);
        self.limit_kind.reserve(searches);
        self.pv.ends.reserve(searches);
        self.depth_nodes.ends.reserve(searches);
        self.depth_time_us.ends.reserve(searches);
    }

    fn push(&mut self, search: &SearchColumns) {
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
            depth_time_us,
            score,
            pv,
            time_us,
            overshoot_us,
            limit_kind,
            limit_value,
        } = search;
        let player = self.number(player);
        self.player.push(player);
        self.depth.push(*depth);
        self.selective_depth.push(*selective_depth);
        self.nodes.push(*nodes);
        self.leaves.push(*leaves);
        self.quiescence_nodes.push(*quiescence_nodes);
        self.cutoffs.push(*cutoffs);
        self.first_move_cutoffs.push(*first_move_cutoffs);
        self.table_probes.push(*table_probes);
        self.table_hits.push(*table_hits);
        self.table_stores.push(*table_stores);
        self.researches.push(*researches);
        self.simulations.push(*simulations);
        self.tree_nodes.push(*tree_nodes);
        self.playout_plies.push(*playout_plies);
        self.depth_nodes.push(depth_nodes);
        self.depth_time_us.push(depth_time_us);
        self.score.push(*score);
        self.pv.push(pv);
        self.time_us.push(*time_us);
        self.overshoot_us.push(*overshoot_us);
        self.limit_kind.push(*limit_kind);
        self.limit_value.push(*limit_value);
    }

    fn row(&self, index: usize) -> SearchColumns {
        SearchColumns {
            player: self.names[usize::from(self.player[index])].clone(),
            depth: self.depth[index],
            selective_depth: self.selective_depth[index],
            nodes: self.nodes[index],
            leaves: self.leaves[index],
            quiescence_nodes: self.quiescence_nodes[index],
            cutoffs: self.cutoffs[index],
            first_move_cutoffs: self.first_move_cutoffs[index],
            table_probes: self.table_probes[index],
            table_hits: self.table_hits[index],
            table_stores: self.table_stores[index],
            researches: self.researches[index],
            simulations: self.simulations[index],
            tree_nodes: self.tree_nodes[index],
            playout_plies: self.playout_plies[index],
            depth_nodes: self.depth_nodes.get(index).to_vec(),
            depth_time_us: self.depth_time_us.get(index).to_vec(),
            score: self.score[index],
            pv: self.pv.get(index).to_string(),
            time_us: self.time_us[index],
            overshoot_us: self.overshoot_us[index],
            limit_kind: self.limit_kind[index],
            limit_value: self.limit_value[index],
        }
    }

    fn view(&self, index: usize) -> SearchView<'_> {
        SearchView {
            player: &self.names[usize::from(self.player[index])],
            depth: self.depth[index],
            nodes: self.nodes[index],
            simulations: self.simulations[index],
            depths: [self.depth_nodes.get(index).len(), self.depth_time_us.get(index).len()],
            score: self.score[index],
            limit_kind: self.limit_kind[index],
            limit_value: self.limit_value[index],
        }
    }
}

impl<'a> From<&'a MoveRow> for PlyView<'a> {
    fn from(row: &'a MoveRow) -> PlyView<'a> {
        PlyView {
            ply: row.ply,
            seat: row.seat,
            mv: &row.mv,
            legal: row.legal,
            search: row.search.as_ref().map(SearchView::from),
        }
    }
}

impl<'a> From<&'a SearchColumns> for SearchView<'a> {
    fn from(search: &'a SearchColumns) -> SearchView<'a> {
        SearchView {
            player: &search.player,
            depth: search.depth,
            nodes: search.nodes,
            simulations: search.simulations,
            depths: [search.depth_nodes.len(), search.depth_time_us.len()],
            score: search.score,
            limit_kind: search.limit_kind,
            limit_value: search.limit_value,
        }
    }
}

impl From<&BoutRows> for BoutColumns {
    fn from(bout: &BoutRows) -> BoutColumns {
        BoutColumns {
            games: bout.games.clone(),
            moves: bout.moves.iter().collect(),
            probes: bout.probes.clone(),
        }
    }
}

impl From<&BoutColumns> for BoutRows {
    fn from(bout: &BoutColumns) -> BoutRows {
        BoutRows { games: bout.games.clone(), moves: bout.moves.rows(), probes: bout.probes.clone() }
    }
}
