"""One question over many move rows: Agon against DuckDB and Polars, the same files, the same threads, the same run.

The question is the one of `agon bench analysis`: count, mean nodes and sum of cutoffs by player and depth. All three take
turns, several times, each in a process of its own; the best wall time and the least processor time of each count, their
answers must be the same, and the ratios to DuckDB are printed. Needs duckdb and polars from PyPI:

    python3 -m venv bench/.venv && bench/.venv/bin/pip install duckdb polars
    bench/.venv/bin/python bench/analysis.py target/release/agon
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

QUERY = """SELECT player, depth, count(*), avg(nodes), sum(cutoffs) FROM read_parquet('{files}')
           WHERE player IS NOT NULL GROUP BY player, depth ORDER BY player, depth"""


def duckdb_groups(files, threads):
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    return connection.execute(QUERY.format(files=files)).fetchall()


def polars_groups(files, threads):
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars as pl

    rows = pl.scan_parquet(files).filter(pl.col("player").is_not_null()).group_by("player", "depth")
    sums = rows.agg(pl.len(), pl.col("nodes").mean().alias("mean_nodes"), pl.col("cutoffs").sum())
    return sums.sort("player", "depth").collect(engine="streaming").rows()


PEERS = {"duckdb": duckdb_groups, "polars": polars_groups}


def measure(peer, files, threads):
    """Answers in this process; what it takes to start Python and to load the library is not counted."""
    __import__(peer)
    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.perf_counter()
    groups = PEERS[peer](files, threads)
    seconds = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    groups = [[player, depth, count, float(mean), int(cutoffs)] for player, depth, count, mean, cutoffs in groups]
    return {"seconds": seconds, "cpu": cpu, "peak": used.ru_maxrss * 1024, "groups": groups}


def ask_peer(peer, folder, threads):
    call = [sys.executable, __file__, "--peer", peer, "--data", folder, "--threads", str(threads)]
    environment = dict(os.environ, POLARS_MAX_THREADS=str(threads))
    return json.loads(subprocess.run(call, check=True, capture_output=True, env=environment).stdout)


def ask_agon(agon, folder, threads):
    call = [agon, "bench", "analysis", "--question", "scan", "--data", folder, "--threads", str(threads)]
    told = json.loads(subprocess.run(call, check=True, capture_output=True).stdout)
    keys = ("player", "depth", "count", "mean_nodes", "cutoffs")
    groups = [[group[key] for key in keys] for group in told["groups"]]
    return {"seconds": told["seconds"], "cpu": told["cpu_seconds"], "peak": told["peak_memory"], "groups": groups}


def same(one, other):
    exact = [row[:3] + row[4:] for row in one] == [row[:3] + row[4:] for row in other]
    return exact and all(abs(a[3] - b[3]) <= 1e-9 * abs(a[3]) for a, b in zip(one, other))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("agon", nargs="?", default="agon", help="the binary")
    parser.add_argument("--rows", type=int, default=50_000_000, help="rows of moves")
    parser.add_argument("--data", help="the folder of the dataset")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5, help="how often each is measured")
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    call = parser.parse_args()
    if call.peer:
        print(json.dumps(measure(call.peer, f"{call.data}/moves/*/*.parquet", call.threads)))
        return
    make = [call.agon, "bench", "analysis", "--rows", str(call.rows), "--json"]
    made = json.loads(subprocess.run(make + (["--data", call.data] if call.data else []), check=True, capture_output=True).stdout)
    folder = made["data"]
    print(f"{made['rows']} rows in {made['files']} files, {made['bytes_per_row']:.1f} bytes a row, {call.threads} threads")
    best = {}
    for _ in range(call.turns):
        for name in ("agon", *PEERS):
            told = ask_agon(call.agon, folder, call.threads) if name == "agon" else ask_peer(name, folder, call.threads)
            known = best.setdefault(name, told)
            known["seconds"] = min(known["seconds"], told["seconds"])
            known["cpu"] = min(known["cpu"], told["cpu"])
            known["peak"] = max(known["peak"], told["peak"])
            if not same(told["groups"], best["agon"]["groups"]):
                sys.exit(f"{name} finds other numbers than agon")
    print(f"{'':8}{'seconds':>9}{'to duckdb':>11}{'CPU s':>8}{'to duckdb':>11}{'peak MB':>9}")
    for name, told in best.items():
        ratios = [told[key] / best["duckdb"][key] for key in ("seconds", "cpu")]
        print(
            f"{name:8}{told['seconds']:9.2f}{ratios[0]:11.2f}{told['cpu']:8.2f}{ratios[1]:11.2f}{told['peak'] / 1e6:9.0f}"
        )


if __name__ == "__main__":
    main()
