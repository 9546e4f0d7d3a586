"""Writes the values that the metrics are tested against.

    python -m venv scorers && scorers/bin/pip install nltk==3.10.4 rouge-score==0.1.2
    scorers/bin/python generate.py

Stems come from NLTK's Porter stemmer, ROUGE-L from rouge-score with stemming, BLEU-1 from NLTK's sentence_bleu.
SQuAD's, HotpotQA's and LoCoMo's scores follow their published definitions, written down here anew.
"""

import itertools
import json
import random
import re
import string
from collections import Counter
from pathlib import Path

from nltk.stem.porter import PorterStemmer
from nltk.translate.bleu_score import sentence_bleu
from rouge_score.rouge_scorer import RougeScorer

HERE = Path(__file__).parent
STEMMER = PorterStemmer()
ROUGE = RougeScorer(["rougeL"], use_stemmer=True)

BASES = """act adopt advance agree allow analogy apolog bat be bee bless boy bubbl cannot carr ceas cit commun
conform connect controll convers cri cry day decis depend die differ digit dry eas electr enjoy even exceed fail
fall feed feudal file fizz fli fly form formal geolog gyroscop hap happ hesit hiss homolog hop hope hopp infer
inning irrit lie logic love mat mean motor nation news obey one operat organ out pian plaster play predic prefer
probat proceed radic rate reason relat replac rol roll say see sens sensit siz sk sky spy succeed syz tan tie toy
triplic troubl try tun use val vietnam vile way yell yes yyy zoo""".split()
SUFFIXES = """ s es ies ied ed eed ing ings y ly ally alli al ational ation ations ate ator ence ency ance ancy enci
izer ize ized ization able ible bli ably ably ent ment ement ments ant ou ous ously ousness ism alism ive iveness
iviti ivity iti ity ality aliti bility ful fully fulness ness logy logi log ion tion sion er ers est ic ical icate
ative alize ll le e ee ss""".split()
WORDS = """skies dying lying tying innings outings cannings howe caresses ponies ties caress cats plastered bled
sing conflated happy relational conditional vietnamization callousness formaliti triplicate revival adjustment
adoption probate cease controlling roll i a to café naïve über 2023 7 1990s don't co-op o'clock geology""".split()

SENTENCES = [
    "",
    "Paris",
    "paris.",
    "The Eiffel Tower, in Paris",
    "eiffel tower",
    "in the tower of Paris and Rome",
    "yes",
    "No",
    "noanswer",
    "Yes, she did",
    "She adopted a puppy and two kittens",
    "two kittens and the puppy",
    "7 May 2023",
    "May 7, 2023",
    "7",
    7,
    "pottery, camping, painting, swimming",
    "painting; maybe pottery",
    "Camping and swimming",
    "swims, camped",
    "Psychology, counseling certification",
    "counselling",
    "No information available",
    "That was not mentioned in the talk.",
    "The a an",
    "running runs ran runner easily fairly",
    "the runner runs easily",
    "Über café, naïve — “quoted”",
    "the the the the the the the",
    "the cat is on the mat",
    "there is a cat on the mat",
    "She said that she would, like, never go there again; so she stayed.",
    "U.S.A.",
    "usa",
    "a_b under_score",
]


def tokens(text, dropped, commas):
    text = str(text)
    if commas:
        text = text.replace(",", "")
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(rf"\b({dropped})\b", " ", text).split()


def f1(prediction, gold):
    shared = sum((Counter(prediction) & Counter(gold)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(prediction), shared / len(gold)
    return 2 * precision * recall / (precision + recall)


def squad(prediction, gold):
    one, other = (tokens(text, "a|an|the", False) for text in (prediction, gold))
    guarded = any(side in ([], ["yes"], ["no"], ["noanswer"]) for side in (one, other))
    return {
        "exact_match": float(one == other),
        "f1": float(one == other) if guarded else f1(one, other),
        "substring": float(" ".join(other) in " ".join(one)) if other else float(not one),
    }


def locomo(prediction, gold):
    def stems(text):
        return [STEMMER.stem(word) for word in tokens(text, "a|an|the|and", True)]

    prediction, gold = str(prediction), str(gold)
    parts = [part.strip() for part in prediction.split(",")]
    best = [max(f1(stems(part), stems(wanted)) for part in parts) for wanted in gold.split(",")]
    refused = any(phrase in prediction.lower() for phrase in ("no information available", "not mentioned"))
    return {
        "exact_match": float(
            set(tokens(prediction, "a|an|the|and", True)) == set(tokens(gold, "a|an|the|and", True))
        ),
        "1": sum(best) / len(best),
        "2": f1(stems(prediction), stems(gold)),
        "3": f1(stems(prediction), stems(gold.split(";")[0].strip())),
        "5": float(refused),
    }


def rouge(prediction, gold):
    score = ROUGE.score(str(gold), str(prediction))["rougeL"]
    return {"f1": score.fmeasure, "recall": score.recall, "precision": score.precision}


def bleu(prediction, gold):
    words = [re.findall(r"[^\W_]+", str(text).lower()) for text in (prediction, gold)]
    if not all(words) or not set(words[0]) & set(words[1]):
        return 0.0
    return sentence_bleu([words[1]], words[0], weights=(1.0,))


def write(name, lines):
    with open(HERE / name, "w", encoding="utf-8") as out:
        out.writelines(line + "\n" for line in lines)


def main():
    made = sorted({base + suffix for base, suffix in itertools.product(BASES, SUFFIXES)} - set(WORDS))
    made = random.Random(1).sample(made, 2500)
    write("stems.tsv", (f"{word}\t{STEMMER.stem(word)}" for word in WORDS + sorted(made)))
    pairs = [
        {
            "prediction": str(prediction),
            "gold": str(gold),
            "squad": squad(prediction, gold),
            "locomo": locomo(prediction, gold),
            "rouge_l": rouge(prediction, gold),
            "bleu_1": bleu(prediction, gold),
        }
        for prediction, gold in itertools.product(SENTENCES, SENTENCES)
    ]
    kept = [pair for pair in pairs if pair["squad"]["f1"] or pair["rouge_l"]["f1"] or pair["locomo"]["1"]]
    others = [pair for pair in pairs if pair not in kept]
    kept += random.Random(2).sample(others, 60)
    write("pairs.jsonl", (json.dumps(pair, ensure_ascii=False) for pair in kept))


main()
