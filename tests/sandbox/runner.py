"""A stand-in for the real runner: executes a program, then answers whether it found anything."""

import torch


class Runner:
    def __init__(self):
        self.space = {"__name__": "__main__", "found": [], "reply": {}}

    def handle(self, header, tensors):
        if header["op"] == "run":
            self.space.update(header["given"])
            exec(compile(header["source"], "<attack>", "exec"), self.space)
            return {"found": self.space["found"]}, self.space["reply"]
        if header["op"] == "double":
            return {"answer": header["number"] * 2}, {k: 2 * v for k, v in tensors.items()}
        if header["op"] == "facts":
            return {"facts": eval(header["source"], {"torch": torch, **self.space})}, {}
        raise ValueError(header["op"])
