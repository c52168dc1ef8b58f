"""Plays a game of two Agon players by python-chess and checks what they report. Call: python_chess.py AGON"""

import sys

import chess
import chess.engine

PLAYERS = ["pvs", 'search = { algorithm = "uct", rollout_plies = 8 }']


def open_engine(player):
    return chess.engine.SimpleEngine.popen_uci(
        [sys.argv[1], "engine", "serve", "--protocol", "uci", "--player", player], timeout=60
    )


engines = [open_engine(player) for player in PLAYERS]
for engine in engines:
    assert engine.id["name"].startswith("Agon "), engine.id
    engine.configure({"Hash": 4})
board = chess.Board()
infos = 0
while not board.is_game_over() and board.ply() < 120:
    engine = engines[board.ply() % 2]
    limit = [chess.engine.Limit(depth=3), chess.engine.Limit(nodes=100)][board.ply() % 2]
    if board.ply() % 10 == 8:
        limit = chess.engine.Limit(white_clock=1, black_clock=1, white_inc=0.01, black_inc=0.01)
    found = engine.play(board, limit, info=chess.engine.INFO_ALL)
    info = found.info
    # python-chess drops a line with an illegal move.
    assert info["pv"][0] == found.move, info
    assert info["nodes"] > 0 and info["seldepth"] >= info["depth"] and "nps" in info and "time" in info, info
    assert info["score"].turn == board.turn, info
    infos += 1
    board.push(found.move)

mate = chess.Board("6k1/5ppp/8/8/8/8/8/R6K w - - 0 1")
info = engines[0].analyse(mate, chess.engine.Limit(depth=4))
assert info["score"].relative == chess.engine.Mate(1), info
with engines[0].analysis(chess.Board()) as analysis:
    for info in analysis:
        if info.get("depth", 0) >= 4:
            break
    analysis.stop()
    assert analysis.wait().move in chess.Board().legal_moves
for engine in engines:
    engine.quit()
print(f"python-chess {chess.__version__}: {board.ply()} plies, {infos} searches, {board.result()}")
