"""Exact dense search by numpy: a matrix of unit vectors times the question, then the best of the products."""

import json
import os
import sys
import time

import numpy


def main():
    folder, dimension, k = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

    def units(name):
        rows = numpy.fromfile(os.path.join(folder, name), dtype="<f4").reshape(-1, dimension)
        return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)

    facts, questions = units("facts"), units("questions")
    seconds, best = [], []
    for question in questions:
        started = time.perf_counter()
        scores = facts @ question
        some = numpy.argpartition(scores, -k)[-k:]
        order = some[numpy.argsort(scores[some])[::-1]]
        seconds.append(time.perf_counter() - started)
        best.append([(int(doc), float(scores[doc])) for doc in order])
    print(json.dumps({"seconds": seconds, "best": best}))


if __name__ == "__main__":
    main()
