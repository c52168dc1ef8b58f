"""Random games and UCT simulations per second: Agon against OpenSpiel's C++, one thread, same machine, same run.

OpenSpiel plays entirely in C++: an MCTSBot with one simulation and an evaluator of k random rollouts plays k games.
Simulations are those of an MCTSBot with one rollout each, from the first decision: same exploration constant, no solver,
a fresh tree. The two programs alternate several times; the best run of each counts, and the ratio is printed.
"""

import argparse
import json
import subprocess
import time

import pyspiel

# Agon's name, OpenSpiel's name, the target ratio.
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

# The same for simulations, and Agon's moves to the first decision.
SEARCHES = [
    ("tic-tac-toe", "tic_tac_toe", 4, None),
    ("connect-four", "connect_four", 8, None),
    ("othello", "othello", 60, None),
    ("checkers", "checkers", 25, None),
    ("go", "go(board_size=9,komi=7.5)", 6, None),
    ("chess", "chess", 12, None),
    ("backgammon", "backgammon", 25, "21"),
]
EXPLORATION = 2.0
# More than any of these trees grows to, so that neither side stops to clear it.
TREE_MB = 1000


def decision(game):
    """The first state in which a player decides."""
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.chance_outcomes()[0][0])
    return state


def per_second(count, elapsed):
    """Work a second. Ends the program if no processor could have done it, as `agon_search::rate` does."""
    if elapsed < 1e-7 or count / elapsed > 1e10:
        raise SystemExit(f"error: no rate for a count of {count} in {elapsed} s: check that the work was done")
    return count / elapsed


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
            return per_second(rollouts, elapsed)
        rollouts = max(rollouts * 2, int(rollouts * seconds * 1.2 / max(elapsed, 1e-6)))


def agon_rate(agon, name, milliseconds):
    """Random games a second by `agon bench games`, and plies a game."""
    call = [agon, "bench", "games", name, "--runs", "1", "--ms", str(milliseconds), "--json"]
    speed = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)["games"][0]
    return speed["games_per_second"], speed["plies_per_game"]


def rising(simulate, seconds):
    """Simulations a second of `simulate(n)`, which returns its time, n growing until that is long enough."""
    simulations = 1000
    while True:
        elapsed = simulate(simulations)
        if elapsed > seconds:
            return per_second(simulations, elapsed)
        simulations = max(simulations * 2, int(simulations * seconds * 1.2 / max(elapsed, 1e-6)))


def openspiel_simulations(name, seconds):
    """UCT simulations a second inside OpenSpiel's C++."""
    game = pyspiel.load_game(name)
    state = decision(game)

    def simulate(simulations):
        evaluator = pyspiel.RandomRolloutEvaluator(1, 1)
        bot = pyspiel.MCTSBot(game, evaluator, EXPLORATION, simulations, TREE_MB, False, 1, False)
        start = time.perf_counter()
        bot.step(state)
        return time.perf_counter() - start

    return rising(simulate, seconds)


def agon_simulations(agon, name, moves, seconds):
    """UCT simulations a second by `agon search`, by its own clock."""
    player = f'search = {{ algorithm = "uct", c = {EXPLORATION}, solver = false }}'

    def simulate(simulations):
        call = [agon, "search", name, "--player", player, "--limit", f"nodes={simulations}", "--json"]
        call += ["--moves", moves] if moves else []
        told = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
        assert told["simulations"] == simulations, "the search stopped early"
        return told["time_us"] / 1e6

    return rising(simulate, seconds)


def table(title, rows, known, runs, ours, theirs):
    """Prints the best rates of both sides in turns; `rows` begin with both names and the aim."""
    print(f"{title} a second, one thread, the best of {runs}")
    print(f"{'game':<18}{'agon':>12}{'openspiel':>12}{'ratio':>9}{'aim':>6}")
    for row in rows:
        name, other_name, aim = row[:3]
        if other_name.split("(")[0] not in known:
            print(f"{name:<18}  this OpenSpiel does not have it")
            continue
        mine = other = 0.0
        for _ in range(runs):
            mine = max(mine, ours(row))
            other = max(other, theirs(row))
        print(f"{name:<18}{mine:>12.0f}{other:>12.0f}{mine / other:>9.1f}{aim or '-':>6}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agon", required=True, help="the agon binary")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5)
    arguments = parser.parse_args()
    known = set(pyspiel.registered_names())
    seconds = arguments.seconds
    table(
        "random games",
        GAMES,
        known,
        arguments.runs,
        lambda row: agon_rate(arguments.agon, row[0], int(seconds * 1000))[0],
        lambda row: openspiel_rate(row[1], seconds),
    )
    print()
    table(
        "UCT simulations",
        SEARCHES,
        known,
        arguments.runs,
        lambda row: agon_simulations(arguments.agon, row[0], row[3], seconds),
        lambda row: openspiel_simulations(row[1], seconds),
    )


if __name__ == "__main__":
    main()
