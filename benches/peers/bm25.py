"""BM25 in Python over the terms that Etude's analyzer made: rank_bm25, and bm25s, which scores ahead when it indexes.

Reads the material from the file that is named, prints seconds and best documents as JSON.
"""

import json
import math
import sys
import time

import bm25s
import numpy
from rank_bm25 import BM25Okapi, BM25Plus


class SameIdf(BM25Okapi):
    """rank_bm25's own scoring with the idf that Etude has."""

    def _calc_idf(self, nd):
        for word, count in nd.items():
            self.idf[word] = math.log(1 + (self.corpus_size - count + 0.5) / (count + 0.5))


def best(scores, k):
    """The best k by numpy's fastest way."""
    k = min(k, len(scores))
    some = numpy.argpartition(scores, -k)[-k:]
    return some[numpy.argsort(scores[some])[::-1]]


def main():
    with open(sys.argv[1]) as file:
        material = json.load(file)
    facts, questions = material["facts"], material["questions"]
    few = questions[: material["few"]]
    parameters = {"k1": material["k1"], "b": material["b"]}
    seconds = {}

    def timed(name, work):
        started = time.perf_counter()
        result = work()
        seconds.setdefault(name, []).append(time.perf_counter() - started)
        return result

    for name, kind in [("rank_bm25 BM25Okapi", BM25Okapi), ("rank_bm25 BM25Plus", BM25Plus)]:
        index = timed(f"{name}: build", lambda: kind(facts, **parameters))
        for k in material["sizes"]:
            for question in few:
                timed(f"{name}: query, k = {k}", lambda: best(index.get_scores(question), k))

    def build():
        index = bm25s.BM25(method="lucene", **parameters)
        index.index(facts, show_progress=False)
        return index

    index = timed("bm25s: build", build)
    for k in material["sizes"]:
        for question in questions:
            ask = lambda: index.retrieve([question], k=k, show_progress=False, n_threads=0)
            timed(f"bm25s: query, k = {k}", ask)

    same = SameIdf(facts, **parameters)
    answers = []
    for question in few:
        scores = same.get_scores(question)
        order = numpy.lexsort((numpy.arange(len(scores)), scores))[::-1][:10]
        answers.append([(int(doc), float(scores[doc])) for doc in order if 0 < scores[doc]])
    print(json.dumps({"seconds": seconds, "best": answers}))


if __name__ == "__main__":
    main()
