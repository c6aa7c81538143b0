"""A stand-in for the real runner: executes a program, then answers whether it found anything."""

import sys
import types


class Runner:
    def __init__(self):
        self.given = sys.modules["given"] = types.ModuleType("given")
        self.given.found, self.given.reply = [], {}

    def handle(self, header, tensors):
        if header["op"] == "run":
            vars(self.given).update(header["given"])
            exec(compile(header["source"], "<attack>", "exec"), {"__name__": "__main__"})
            return {"found": self.given.found}, self.given.reply
        if header["op"] == "double":
            return {"answer": header["number"] * 2}, {k: 2 * v for k, v in tensors.items()}
        if header["op"] == "facts":
            return {"facts": eval(header["source"], {"sys": sys})}, {}
        raise ValueError(header["op"])
