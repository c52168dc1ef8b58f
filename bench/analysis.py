"""One query over many move rows: Agon against DuckDB and Polars, with the same files and threads in the same run.

The query is that of `agon-bench analysis`: count, mean nodes and sum of cutoffs by player and depth. The three programs
alternate several times, each in its own process. The best wall time and the least processor time of each count, the answers
must be equal, and the ratios to DuckDB are printed. Needs duckdb and polars from PyPI:

    python3 -m venv bench/.venv && bench/.venv/bin/pip install duckdb polars
    bench/.venv/bin/python bench/analysis.py target/release/agon-bench
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
    """Runs the query in this process, without the time to start Python and load the library."""
    __import__(peer)
    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.perf_counter()
    groups = PEERS[peer](files, threads)
    seconds = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    groups = [[player, depth, count, float(mean), int(cutoffs)] for player, depth, count, mean, cutoffs in groups]
    return {"seconds": seconds, "cpu": cpu, "peak": used.ru_maxrss * 1024, "groups": groups}


def run_peer(peer, folder, threads):
    call = [sys.executable, __file__, "--peer", peer, "--data", folder, "--threads", str(threads)]
    environment = dict(os.environ, POLARS_MAX_THREADS=str(threads))
    return json.loads(subprocess.run(call, check=True, capture_output=True, env=environment).stdout)


def run_agon(program, folder, threads):
    call = [program, "analysis", "--query", "scan", "--data", folder, "--threads", str(threads)]
    answer = json.loads(subprocess.run(call, check=True, capture_output=True).stdout)
    keys = ("player", "depth", "count", "mean_nodes", "cutoffs")
    groups = [[group[key] for key in keys] for group in answer["groups"]]
    return {"seconds": answer["seconds"], "cpu": answer["cpu_seconds"], "peak": answer["peak_memory"], "groups": groups}


def equal(one, other):
    exact = [row[:3] + row[4:] for row in one] == [row[:3] + row[4:] for row in other]
    return exact and all(abs(a[3] - b[3]) <= 1e-9 * abs(a[3]) for a, b in zip(one, other))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?", default="agon-bench", help="the binary agon-bench")
    parser.add_argument("--rows", type=int, default=50_000_000, help="rows of moves")
    parser.add_argument("--data", help="the folder of the dataset")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5, help="measurements of each program")
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    call = parser.parse_args()
    if call.peer:
        print(json.dumps(measure(call.peer, f"{call.data}/moves/*/*.parquet", call.threads)))
        return
    make = [call.program, "analysis", "--rows", str(call.rows), "--json"]
    dataset = json.loads(subprocess.run(make + (["--data", call.data] if call.data else []), check=True, capture_output=True).stdout)
    folder = dataset["data"]
    print(f"{dataset['rows']} rows in {dataset['files']} files, {dataset['bytes_per_row']:.1f} bytes per row, {call.threads} threads")
    best = {}
    for _ in range(call.turns):
        for name in ("agon", *PEERS):
            answer = run_agon(call.program, folder, call.threads) if name == "agon" else run_peer(name, folder, call.threads)
            known = best.setdefault(name, answer)
            known["seconds"] = min(known["seconds"], answer["seconds"])
            known["cpu"] = min(known["cpu"], answer["cpu"])
            known["peak"] = max(known["peak"], answer["peak"])
            if not equal(answer["groups"], best["agon"]["groups"]):
                sys.exit(f"the answer of {name} differs from that of agon")
    print(f"{'':8}{'seconds':>9}{'to duckdb':>11}{'CPU s':>8}{'to duckdb':>11}{'peak MB':>9}")
    for name, answer in best.items():
        ratios = [answer[key] / best["duckdb"][key] for key in ("seconds", "cpu")]
        print(
            f"{name:8}{answer['seconds']:9.2f}{ratios[0]:11.2f}{answer['cpu']:8.2f}{ratios[1]:11.2f}{answer['peak'] / 1e6:9.0f}"
        )


if __name__ == "__main__":
    main()
