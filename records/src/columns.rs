//! The plies of a bout as columns, on their way from the wire to the dataset.
//!
//! [Rows](crate::rows) own their texts and lists, whose allocation would dominate the ingest path. Columns match the layout
//! of the wire and of Parquet. The columns of searches have one entry for each searched ply, so that a search is complete
//! or absent.

use agon_search::Counters;

use crate::rows::{BoutRows, GameRow, LimitKind, MoveRow, ProbeRow, SearchRow};

/// A bout with its plies as columns. Probes are few and stay rows.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct BoutColumns {
    /// The games.
    pub games: Vec<GameRow>,
    /// The plies of all games.
    pub moves: Plies,
    /// The searches of a probe's position.
    pub probes: Vec<ProbeRow>,
}

/// Plies in the order of their keys. Every column but `searches` has one entry per ply.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Plies {
    /// The bouts.
    pub bout: Vec<u64>,
    /// The games within their bouts.
    pub game: Vec<u16>,
    /// The numbers of the plies in their games.
    pub ply: Vec<u16>,
    /// The seats that moved; none for chance.
    pub seat: Vec<Option<u16>>,
    /// The texts of the moves.
    pub mv: TextColumn,
    /// The numbers of legal moves.
    pub legal: Vec<u16>,
    /// Whether each ply was searched: false for chance and in the opening.
    pub searched: Vec<bool>,
    /// The searches of the searched plies.
    pub searches: Searches,
}

/// Searches. Every column but `names` has one entry per search.
#[derive(Clone, PartialEq, Default, Debug)]
#[allow(missing_docs, reason = "the fields of SearchRow have the same names and are documented")]
pub struct Searches {
    /// The names of the players, in the order of their first searches.
    pub names: Vec<String>,
    /// The players as indices of `names`.
    pub player: Vec<u16>,
    pub depth: Vec<u16>,
    pub selective_depth: Vec<u16>,
    /// A column for each counter, in the order of [`Counters::LIST`].
    pub counters: [Vec<u64>; Counters::COUNT],
    pub depth_nodes: ListColumn,
    pub depth_time_us: ListColumn,
    pub score: Vec<f64>,
    pub pv: TextColumn,
    pub time_us: Vec<u64>,
    pub overshoot_us: Vec<u64>,
    pub limit_kind: Vec<LimitKind>,
    pub limit_value: Vec<u64>,
}

/// Concatenated texts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TextColumn {
    /// The end of each entry.
    ends: Vec<u32>,
    text: String,
}

/// Concatenated lists of numbers.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ListColumn {
    /// The end of each entry.
    ends: Vec<u32>,
    values: Vec<u64>,
}

fn offset(length: usize) -> u32 {
    u32::try_from(length).expect("a bout is far smaller than four gigabytes")
}

impl TextColumn {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a text.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(offset(self.text.len()));
    }

    /// Returns the text with an index that must exist.
    pub fn get(&self, index: usize) -> &str {
        let first = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[first as usize..self.ends[index] as usize]
    }

    /// Returns the concatenated texts and the end of each.
    pub(crate) fn parts(&self) -> (&str, &[u32]) {
        (&self.text, &self.ends)
    }
}

impl ListColumn {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a list.
    pub fn push(&mut self, list: &[u64]) {
        self.values.extend_from_slice(list);
        self.ends.push(offset(self.values.len()));
    }

    /// Returns the list with an index that must exist.
    pub fn get(&self, index: usize) -> &[u64] {
        let first = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.values[first as usize..self.ends[index] as usize]
    }

    /// Returns the length of each list.
    pub fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).map(|index| self.get(index).len())
    }

    /// Returns the concatenated values.
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Returns the concatenated values and the end of each list.
    pub(crate) fn parts(&self) -> (&[u64], &[u32]) {
        (&self.values, &self.ends)
    }

    /// Adds lists of these lengths with these concatenated values.
    pub fn extend(&mut self, values: &[u64], lengths: impl Iterator<Item = usize>) {
        let mut last = self.values.len();
        self.values.extend_from_slice(values);
        self.ends.extend(lengths.map(|length| {
            last += length;
            offset(last)
        }));
        debug_assert_eq!(last, self.values.len(), "the lengths are those of the values");
    }
}

impl Plies {
    /// Returns the number of plies.
    pub fn len(&self) -> usize {
        self.searched.len()
    }

    /// Returns whether there are no plies.
    pub fn is_empty(&self) -> bool {
        self.searched.is_empty()
    }

    /// Reserves memory for more plies.
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

    /// Returns the plies as rows.
    pub fn rows(&self) -> Vec<MoveRow> {
        let row = |(index, search): (usize, Option<usize>)| MoveRow {
            bout: self.bout[index],
            game: self.game[index],
            ply: self.ply[index],
            seat: self.seat[index],
            mv: self.mv.get(index).to_string(),
            legal: self.legal[index],
            search: search.map(|index| self.searches.row(index)),
        };
        self.indices().map(row).collect()
    }

    /// Returns the index of each ply, with that of its search if it has one.
    pub fn indices(&self) -> impl ExactSizeIterator<Item = (usize, Option<usize>)> + '_ {
        let mut searches = 0..;
        let search = move |&searched: &bool| if searched { searches.next() } else { None };
        self.searched.iter().map(search).enumerate()
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
    /// Returns the index of a player's name, which is added if it is new.
    pub fn player_index(&mut self, name: &str) -> u16 {
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
        let numbers = [&mut self.time_us, &mut self.overshoot_us, &mut self.limit_value];
        for column in self.counters.iter_mut().chain(numbers) {
            column.reserve(searches);
        }
        self.score.reserve(searches);
        self.limit_kind.reserve(searches);
        self.pv.ends.reserve(searches);
        self.depth_nodes.ends.reserve(searches);
        self.depth_time_us.ends.reserve(searches);
    }

    fn push(&mut self, search: &SearchRow) {
        let SearchRow {
            player,
            depth,
            selective_depth,
            counters,
            depth_nodes,
            depth_time_us,
            score,
            pv,
            time_us,
            overshoot_us,
            limit_kind,
            limit_value,
        } = search;
        let player = self.player_index(player);
        self.player.push(player);
        self.depth.push(*depth);
        self.selective_depth.push(*selective_depth);
        for (column, count) in self.counters.iter_mut().zip(counters.values()) {
            column.push(count);
        }
        self.depth_nodes.push(depth_nodes);
        self.depth_time_us.push(depth_time_us);
        self.score.push(*score);
        self.pv.push(pv);
        self.time_us.push(*time_us);
        self.overshoot_us.push(*overshoot_us);
        self.limit_kind.push(*limit_kind);
        self.limit_value.push(*limit_value);
    }

    fn row(&self, index: usize) -> SearchRow {
        SearchRow {
            player: self.player(index).to_string(),
            depth: self.depth[index],
            selective_depth: self.selective_depth[index],
            counters: self.counters(index),
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

    /// Returns the counters of a search.
    pub fn counters(&self, index: usize) -> Counters {
        Counters::from_values(self.counters.each_ref().map(|column| column[index]))
    }

    /// Returns the name of a search's player.
    pub fn player(&self, index: usize) -> &str {
        &self.names[usize::from(self.player[index])]
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
