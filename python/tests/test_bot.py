"""The loop of a bot answers each message of the protocol."""

import io
import json
import unittest

import agon

HELLO = {"type": "hello", "protocol": 1}
NEW_GAME = {
    "type": "new_game",
    "game": "virus",
    "parameters": {"seats": 3, "size": 5, "pattern": "plus"},
    "seats": 3,
    "seat": 1,
    "position": None,
}
MOVE = {
    "type": "move",
    "ply": 2,
    "seat": 1,
    "moves": ["a1", "b2"],
    "legal": ["c3", "d4"],
    "board": ". .\n. .",
    "position": ".. x",
    "limit": {"clock_ms": [1000, 3000, 10], "increment_ms": 100, "later": 1},
}
END = {"type": "end", "payoffs": [60, 0, 0], "ending": "last player"}
QUIT = {"type": "quit"}


class Recorder(agon.Bot):
    """Keeps what it is shown and plays the last legal move."""

    options = {"depth": 2, "style": "bold"}

    def __init__(self):
        self.seen = []

    def new_game(self, game):
        self.seen.append(game)

    def choose(self, turn):
        self.seen.append(turn)
        return turn.legal[-1]

    def end(self, payoffs, ending):
        self.seen.append((payoffs, ending))


def play(bot, *messages):
    """Returns the answers of a bot."""
    out = io.StringIO()
    bot.run(io.StringIO("".join(json.dumps(message) + "\n" for message in messages)), out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


class Loop(unittest.TestCase):
    def test_answers_hello_and_move_only(self):
        bot = Recorder()
        unknown = {"type": "later", "field": 1}
        answers = play(bot, HELLO, NEW_GAME, unknown, MOVE, END, QUIT, HELLO)
        self.assertEqual(
            answers,
            [
                {"type": "ready", "name": "Recorder", "options": ["depth", "style"]},
                {"type": "move", "move": "d4"},
            ],
        )
        game, turn, end = bot.seen
        self.assertEqual((game.name, game.seats, game.seat, game.parameters["size"]), ("virus", 3, 1, 5))
        self.assertEqual((turn.ply, turn.moves, turn.board, turn.game), (2, ["a1", "b2"], ". .\n. .", game))
        self.assertEqual(end, ([60, 0, 0], "last player"))

    def test_limits_give_seconds(self):
        bot = Recorder()
        play(bot, NEW_GAME, MOVE, {**MOVE, "limit": {"ms": 50}}, {**MOVE, "limit": {"nodes": 9}})
        seconds = [turn.limit.seconds(turn.seat) for turn in bot.seen[1:]]
        self.assertAlmostEqual(seconds[0], 0.18)
        self.assertEqual(seconds[1:], [0.05, None])

    def test_options_replace_defaults(self):
        bot = Recorder()
        play(bot, {"type": "options", "values": {"depth": 5}})
        self.assertEqual(bot.options, {"depth": 5, "style": "bold"})
        self.assertEqual(Recorder.options["depth"], 2)

    def test_answer_carries_counters(self):
        class Counting(agon.Bot):
            def choose(self, turn):
                return agon.Answer("c3", nodes=0, depth=3, score=-1.5, pv=["c3", "d4"])

        self.assertEqual(
            play(Counting(), NEW_GAME, MOVE),
            [{"type": "move", "move": "c3", "nodes": 0, "depth": 3, "score": -1.5, "pv": ["c3", "d4"]}],
        )

    def test_rejects_an_illegal_move_with_the_legal_ones(self):
        class Wrong(agon.Bot):
            def choose(self, turn):
                return "e5"

        with self.assertRaisesRegex(ValueError, "`e5` is not a legal move; legal here: c3 d4"):
            play(Wrong(), NEW_GAME, MOVE)


if __name__ == "__main__":
    unittest.main()
