//! Plies column by column: what a bout is on its way from the wire to the dataset.
//!
//! [Rows](crate::rows) own their texts and lists, which is convenient and costs more for each ply than everything else
//! that is done with it on that way. Here the plies of a bout lie in a few vectors, as the wire brings them and as
//! Parquet takes them. Columns of searches have an entry for each ply that was searched and none for the others, so that
//! no ply has half a search.

use agon_search::Counters;

use crate::rows::{BoutRows, GameRow, LimitKind, MoveRow, ProbeRow, SearchRow};

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
/// [`SearchRow`].
#[derive(Clone, PartialEq, Default, Debug)]
#[allow(missing_docs, reason = "each is the column of the field of the same name, which says what it is")]
pub struct Searches {
    /// The names that players are numbers of, in the order in which they first searched.
    pub names: Vec<String>,
    /// The players by their numbers here.
    pub player: Vec<u16>,
    pub depth: Vec<u16>,
    pub selective_depth: Vec<u16>,
    /// A column for each counter, in the order of [`Counters::LIST`].
    pub counters: [Vec<u64>; Counters::COUNT],
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

    /// Reserves room for more plies.
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
        let row = |(place, search): (usize, Option<usize>)| MoveRow {
            bout: self.bout[place],
            game: self.game[place],
            ply: self.ply[place],
            seat: self.seat[place],
            mv: self.mv.get(place).to_string(),
            legal: self.legal[place],
            search: search.map(|index| self.searches.row(index)),
        };
        self.indices().map(row).collect()
    }

    /// Returns the index of each ply, and that of its search where it has one.
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
        let player = self.number(player);
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

    /// Returns what a search counted.
    pub fn counters(&self, index: usize) -> Counters {
        Counters::from_values(self.counters.each_ref().map(|column| column[index]))
    }

    /// Returns the name of the player who searched.
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
