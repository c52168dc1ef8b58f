"""Random games a second: Agon against OpenSpiel's C++, one thread, same machine, same run.

OpenSpiel plays wholly in C++: an MCTSBot with one simulation whose evaluator makes k random rollouts plays k games.
The two take turns, several times; the best of each counts, and the ratio is printed.
"""

import argparse
import json
import subprocess
import time

import pyspiel

# Agon's name, OpenSpiel's name, the aim for the ratio.
GAMES = [
    ("tic-tac-toe", "tic_tac_toe", 4),
    ("connect-four", "connect_four", 25),
    ("othello", "othello", 100),
    ("checkers", "checkers", 30),
    ("chess", "chess", 12),
    ("go", "go(board_size=9,komi=7.5)", 8),
    ("backgammon", "backgammon", 30),
    ("chinese-checkers", "chinese_checkers(players=2)", 10),
    ("kalah", "mancala", None),
    ("pig", "pig(players=2,winscore=100)", None),
]


def decision(game):
    """The first state in which a player decides."""
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.chance_outcomes()[0][0])
    return state


def openspiel_rate(name, seconds):
    """Random games a second inside OpenSpiel's C++."""
    game = pyspiel.load_game(name)
    state = decision(game)
    rollouts = 1
    while True:
        evaluator = pyspiel.RandomRolloutEvaluator(rollouts, 1)
        bot = pyspiel.MCTSBot(game, evaluator, 1.0, 1, 100, False, 1, False)
        start = time.perf_counter()
        bot.step(state)
        elapsed = time.perf_counter() - start
        if elapsed > seconds:
            return rollouts / elapsed
        rollouts = max(rollouts * 2, int(rollouts * seconds * 1.2 / max(elapsed, 1e-6)))


def agon_rate(agon, name, milliseconds):
    """Random games a second by `agon bench games`, and plies a game."""
    call = [agon, "bench", "games", name, "--runs", "1", "--ms", str(milliseconds), "--json"]
    speed = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)["games"][0]
    return speed["games_per_second"], speed["plies_per_game"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agon", required=True, help="the agon binary")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5)
    arguments = parser.parse_args()
    known = set(pyspiel.registered_names())
    print("random games a second, one thread, the best of", arguments.runs)
    print(f"{'game':<18}{'agon':>12}{'openspiel':>12}{'ratio':>9}{'aim':>6}")
    for ours, theirs, aim in GAMES:
        if theirs.split("(")[0] not in known:
            print(f"{ours:<18}  this OpenSpiel does not have it")
            continue
        mine = other = 0.0
        for _ in range(arguments.runs):
            mine = max(mine, agon_rate(arguments.agon, ours, int(arguments.seconds * 1000))[0])
            other = max(other, openspiel_rate(theirs, arguments.seconds))
        print(f"{ours:<18}{mine:>12.0f}{other:>12.0f}{mine / other:>9.1f}{aim or '-':>6}", flush=True)


if __name__ == "__main__":
    main()
