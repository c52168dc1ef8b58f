"""Datasets as data frames. AGON_DATA names a data folder; without it or a library the tests that need it are skipped."""

import importlib.util
import os
import pathlib
import tempfile
import unittest

import agon

DATA = os.environ.get("AGON_DATA")
LIBRARIES = {"polars": ["polars"], "pandas": ["pandas", "pyarrow"]}


def missing(library):
    return any(importlib.util.find_spec(module) is None for module in LIBRARIES[library])


class Folders(unittest.TestCase):
    def test_rejects_another_folder(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(FileNotFoundError, "no data folder"):
            agon.open(folder)

    def test_lists_runs_and_parts_in_order(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "runs").mkdir()
            for run in ["b", "a"]:
                (root / "runs" / f"{run}.json").write_text("{}")
            games = root / "games" / "run=a"
            games.mkdir(parents=True)
            for name in ["part-10-19", "part-0-9", "part-9-9"]:
                (games / f"{name}.parquet").touch()
            data = agon.open(folder)
            self.assertEqual(data.runs, ["a", "b"])
            names = [path.stem for path in data.parts("games", "a")]
            self.assertEqual(names, ["part-0-9", "part-9-9", "part-10-19"])
            with self.assertRaisesRegex(KeyError, "there is no run `c`; there are: a, b"):
                data.parts("games", "c")
            with self.assertRaisesRegex(LookupError, "no games of b"):
                data.games("b")


class Frames(unittest.TestCase):
    def check(self, library):
        if DATA is None:
            self.skipTest("AGON_DATA names no data folder")
        if missing(library):
            self.skipTest(f"{library} is not installed")
        data = agon.open(DATA)
        run = data.runs[0]
        games, moves = data.games(library=library), data.moves(run, library=library)
        self.assertEqual(sum(games["plies"]), len(data.moves(library=library)))
        self.assertEqual(set(moves["run"]), {run})
        self.assertEqual(set(games["run"]), set(data.runs))
        few = data.moves(run, ["run", "ply", "move"], library)
        self.assertEqual((list(few.columns), len(few)), (["run", "ply", "move"], len(moves)))

    def test_polars(self):
        self.check("polars")

    def test_pandas(self):
        self.check("pandas")


if __name__ == "__main__":
    unittest.main()
