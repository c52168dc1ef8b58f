"""Bots: a class with the loop of the bot protocol, version 1, and the types of its messages."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, TextIO, Union


@dataclass(frozen=True)
class Limit:
    """The limit of a move. Exactly one of the first five is given."""

    ms: Optional[float] = None
    cpu_ms: Optional[float] = None
    nodes: Optional[int] = None
    depth: Optional[int] = None
    clock_ms: Optional[List[float]] = None
    increment_ms: float = 0

    def seconds(self, seat: int) -> Optional[float]:
        """Returns the time for this move, or None if time is not limited: on a clock, a thirtieth of the time left and
        four fifths of the increment, at most half of the time left."""
        if self.clock_ms is not None:
            left = self.clock_ms[seat]
            return min(left / 30 + self.increment_ms * 4 / 5, left / 2) / 1000
        time = self.ms if self.ms is not None else self.cpu_ms
        return None if time is None else time / 1000


@dataclass(frozen=True)
class Game:
    """A game, as its first message describes it."""

    name: str
    parameters: Dict[str, Union[int, float, bool, str]]
    seats: int
    seat: int
    position: Optional[str] = None


@dataclass(frozen=True)
class Turn:
    """A position in which the bot must choose a move."""

    game: Game
    ply: int
    seat: int
    moves: List[str]
    legal: List[str]
    board: str
    limit: Limit
    position: Optional[str] = None


@dataclass
class Answer:
    """A move with what the search counted. Everything but the move may be left out."""

    move: str
    nodes: Optional[int] = None
    depth: Optional[int] = None
    selective_depth: Optional[int] = None
    score: Optional[float] = None
    pv: List[str] = field(default_factory=list)
    simulations: Optional[int] = None


class Bot:
    """A bot. A subclass overrides `choose`, and whatever else it needs; `run` plays until the other side quits."""

    #: The name of the bot; by default that of its class.
    name: Optional[str] = None
    author: Optional[str] = None
    #: The options with their defaults. Values that the player sets replace them.
    options: Dict[str, Any] = {}

    def choose(self, turn: Turn) -> Union[str, Answer]:
        """Returns one of `turn.legal`, alone or in an `Answer`."""
        raise NotImplementedError("a bot overrides choose")

    def new_game(self, game: Game) -> None:
        """Prepares for a game."""

    def end(self, payoffs: List[int], ending: str) -> None:
        """Learns how the game ended."""

    def run(self, lines: Optional[TextIO] = None, out: Optional[TextIO] = None) -> None:
        """Answers the messages of `lines`, by default standard input."""
        lines = sys.stdin if lines is None else lines
        out = sys.stdout if out is None else out
        game: Optional[Game] = None
        for line in iter(lines.readline, ""):
            message = json.loads(line)
            kind = message.get("type")
            if kind == "hello":
                answer = {"type": "ready", "name": self.name or type(self).__name__, "options": list(self.options)}
                if self.author:
                    answer["author"] = self.author
            elif kind == "options":
                self.options = {**self.options, **message["values"]}
                continue
            elif kind == "new_game":
                game = Game(
                    name=message["game"],
                    parameters=message.get("parameters", {}),
                    seats=message["seats"],
                    seat=message["seat"],
                    position=message.get("position"),
                )
                self.new_game(game)
                continue
            elif kind == "move":
                if game is None:
                    raise ValueError("`move` came before `new_game`")
                answer = self._answer(message, game)
            elif kind == "end":
                self.end(message["payoffs"], message["ending"])
                continue
            elif kind == "quit":
                return
            else:
                continue
            out.write(json.dumps(answer) + "\n")
            out.flush()

    def _answer(self, message: Dict[str, Any], game: Game) -> Dict[str, Any]:
        known = Limit.__dataclass_fields__
        turn = Turn(
            game=game,
            ply=message["ply"],
            seat=message["seat"],
            moves=message["moves"],
            legal=message["legal"],
            board=message.get("board", ""),
            limit=Limit(**{key: value for key, value in message["limit"].items() if key in known}),
            position=message.get("position"),
        )
        chosen = self.choose(turn)
        answer = chosen if isinstance(chosen, Answer) else Answer(chosen)
        if answer.move not in turn.legal:
            raise ValueError(f"`{answer.move}` is not a legal move; legal here: {' '.join(turn.legal)}")
        given = {key: value for key, value in vars(answer).items() if value is not None and value != []}
        return {"type": "move", **given}
