"""Datasets of Agon as data frames of pandas or Polars, whichever is installed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union


def open(data: Union[str, "os.PathLike[str]"] = "agon-data") -> "Data":
    """Opens a data folder."""
    return Data(data)


class Data:
    """A data folder: the files that `agon run` and coordinators write."""

    def __init__(self, data: Union[str, "os.PathLike[str]"]) -> None:
        self.path = Path(data)
        if not (self.path / "runs").is_dir():
            raise FileNotFoundError(f"{self.path} is no data folder of Agon: it has no folder `runs`")

    @property
    def runs(self) -> List[str]:
        """The ids of all runs, in the order of their names."""
        return sorted(path.stem for path in (self.path / "runs").glob("*.json"))

    def run(self, run: str) -> Dict[str, Any]:
        """Returns the description of a run."""
        self._check(run)
        return json.loads((self.path / "runs" / f"{run}.json").read_text(encoding="utf-8"))

    def games(self, run: Optional[str] = None, columns: Optional[Sequence[str]] = None, library: Optional[str] = None):
        """Returns a row a game, with the run as a column: of one run, or of all."""
        return self._frame("games", run, columns, library)

    def moves(self, run: Optional[str] = None, columns: Optional[Sequence[str]] = None, library: Optional[str] = None):
        """Returns a row a ply, with the run as a column: of one run, or of all."""
        return self._frame("moves", run, columns, library)

    def probes(self, run: Optional[str] = None, columns: Optional[Sequence[str]] = None, library: Optional[str] = None):
        """Returns a row a position and player of probes, with the run as a column: of one run, or of all."""
        return self._frame("probes", run, columns, library)

    def parts(self, table: str, run: str) -> List[Path]:
        """Returns the Parquet files of a run in the order of its bouts."""
        self._check(run)
        parts = (self.path / table / f"run={run}").glob("part-*.parquet")
        return sorted(parts, key=lambda path: int(path.stem.split("-")[1]))

    def _check(self, run: str) -> None:
        if run not in self.runs:
            raise KeyError(f"there is no run `{run}`; there are: {', '.join(self.runs) or 'none'}")

    def _frame(self, table: str, run: Optional[str], columns: Optional[Sequence[str]], library: Optional[str]):
        runs = self.runs if run is None else [run]
        parts = [(run, part) for run in runs for part in self.parts(table, run)]
        if not parts:
            raise LookupError(f"{self.path} has no {table} of {run or 'any run'}")
        wanted = None if columns is None else [column for column in columns if column != "run"]
        library = library or _installed()
        if library == "polars":
            import polars

            frames = [
                polars.read_parquet(part, columns=wanted, hive_partitioning=False).with_columns(run=polars.lit(run))
                for run, part in parts
            ]
            # Columns that a later build added are null in older parts.
            frame = polars.concat(frames, how="diagonal_relaxed")
        elif library == "pandas":
            import pandas
            import pyarrow.parquet

            frames = [
                pyarrow.parquet.ParquetFile(part).read(columns=wanted).to_pandas().assign(run=run) for run, part in parts
            ]
            frame = pandas.concat(frames, ignore_index=True)
        else:
            raise ValueError(f"`{library}` is no library of data frames; write pandas or polars")
        return frame if columns is None else frame[list(columns)]


def _installed() -> str:
    """Returns the library to use: Polars if it is installed."""
    from importlib.util import find_spec

    if find_spec("polars"):
        return "polars"
    if find_spec("pandas") and find_spec("pyarrow"):
        return "pandas"
    raise ImportError("data frames need polars, or pandas with pyarrow; install one: pip install polars")
