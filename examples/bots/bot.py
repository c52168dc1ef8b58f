"""A bot in Python: plays a random legal move. docs/reference/bot-protocol.md describes the protocol."""

import json
import random
import sys

for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        answer = {"type": "ready", "name": "random bot"}
    elif message["type"] == "move":
        answer = {"type": "move", "move": random.choice(message["legal"])}
    elif message["type"] == "quit":
        break
    else:
        continue
    print(json.dumps(answer), flush=True)
