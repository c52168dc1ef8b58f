"""Bots for Agon, and its datasets as data frames.

>>> import agon
>>> class First(agon.Bot):
...     def choose(self, turn):
...         return turn.legal[0]
"""

from .bot import Answer, Bot, Game, Limit, Turn
from .data import Data, open

__all__ = ["Answer", "Bot", "Data", "Game", "Limit", "Turn", "open"]
