"""Scores of partitions: the cases of the reference scorer, and twins written from the definitions.

The numbers are recall, precision and F, as the reference scorer lists them.
"""

import json
import random
import time
from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from laso.errors import BadData
from laso.metrics import PartitionScores, Ratios, cluster_scores, clusters, partition_scores
from tests.spaces import quick

MEASURES = ("mentions", "muc", "b_cubed", "ceaf_e", "ceaf_m", "lea", "blanc", "pairwise")


A, M, N = "a bc def", "abcdef", "a b c d e f"
MIXED = (  # A7, A8 and A9 differ in the repeated mentions, which do not count
    "muc 1/3, b_cubed 5/9 17/42, ceaf_m .66667 .57143 .61538, ceaf_e .73333 .55 .62857, "
    "blanc .35227 .27206 .30357, lea 1/2 2/7"
)
PERFECT = "b_cubed 1, ceaf_m 1, ceaf_e 1, blanc 1, lea 1"
CASES = {  # Each letter is a mention. One number is all three; of two, F is the harmonic mean.
    "A1": (A, "a bc def", f"muc 1, {PERFECT}"),
    "A2": (
        *(A, "a de"),
        "muc 1/3 1 1/2, b_cubed 7/18 1 14/25, ceaf_m .5 1 .66667, ceaf_e .6 .9 .72, "
        "blanc .21591 1 .35385, lea 1/3 1 1/2",
    ),
    "A3": (
        *(A, "a bcx defy z"),
        "muc 1 3/5 3/4, b_cubed 1 55/108 110/163, ceaf_m 1 .66667 .8, "
        "ceaf_e .88571 .66429 .75918, blanc 1 .42593 .59717, lea 1 4/9",
    ),
    "A4": (A, "a bcx dy z", MIXED),
    "A5": (  # B is another mention, which overlaps b in the text
        *(A, "a bcxB dy z"),
        "muc 1/3 1/4 2/7, b_cubed 5/9 5/16, ceaf_m .66667 .5 .57143, "
        "ceaf_e .68889 .51667 .59048, blanc .35227 .19048 .24716, lea 1/2 5/24",
    ),
    "A6": (
        *(A, "a bcx dy Bz"),
        "muc 1/3 1/4 2/7, b_cubed 5/9 17/48, ceaf_m .66667 .5 .57143, ceaf_e .73333 .55 .62857, "
        "blanc .35227 .20870 .25817, lea 1/2 1/4",
    ),
    "A7": (A, "a bcxb dy z", MIXED),
    "A8": (A, "a bcx dy bz", MIXED),
    "A9": (A, "a bcx dy bbbbbbbbbbz", MIXED),
    "A10": (A, N, "muc 0, b_cubed 1/2 1 2/3, blanc .5 .36667 .42308, lea 1/6"),
    "A11": (
        *(A, M),
        "muc 1 3/5 3/4, b_cubed 1 7/18 14/25, blanc .5 .13333 .21053, lea 5/6 4/15",
    ),
    "A12": (
        *(A, "a x y c d e z"),
        "muc 0, b_cubed 13/36 4/7, blanc .22727 .11905 .15625, lea 1/6 1/7",
    ),
    "A13": (
        *(A, "axycdez"),
        "muc 1/3 1/6 2/9, b_cubed 17/36 6/49, blanc .125 .02381 .04, lea 1/6 1/21",
    ),
    "B1": ("ab cde", "bcx de", "blanc 7/24, lea 1/5 2/5"),
    "C1": ("ab cde fg", "bcx de fg", "blanc 41/80, lea 3/7 4/7"),
    # Bagga & Baldwin (1998)
    "D1": (
        *("12345 67 89ABC", "12345 6789ABC"),
        "muc 1 9/10, b_cubed 1 16/21, lea 1 13/18",
    ),
    "E1": (
        *("12345 67 89ABC", "1234589ABC 67"),
        "muc 1 9/10, b_cubed 1 7/12, lea 1 29/54",
    ),
    # Vilain et al. (1995); F1 and I1 have other links of the same clusters
    "F1": ("ABCD", "AB CD", "muc 2/3 1, lea 1/3 1"),
    "G1": ("AB CD", "ABCD", "muc 1 2/3, lea 1 1/3"),
    "H1": ("ABCD", "ABCD", "muc 1, lea 1"),
    "I1": ("ABCD", "AB CD", "muc 2/3 1, lea 1/3 1"),
    "J1": ("ABC", "AC", "muc 1/2 1, lea 1/3 1"),
    "K1": ("BCDEGHJ", "ABC DEF GHI", "muc 1/2, lea 1/7 1/3"),
    "L1": ("ABC DEFG", "AB CD FGH", "muc 2/5 1/2, lea 5/21 3/7"),
    # gold partitions with coreference links only
    "M1": (M, M, f"muc 1, {PERFECT}"),
    "M2": (M, N, "muc 0, blanc 0, lea 0"),
    "M3": (M, "ab cde f", "blanc .26667 1 .42105, lea 4/15 5/6"),
    "M4": (M, "abcxyz", "blanc .2, lea 1/5"),
    "M5": (M, "a b c x y z", "muc 0, blanc 0, lea 0"),
    "M6": (M, "ab cxy z", "blanc .06667 .25 .10526, lea 1/15 1/3"),
    # gold partitions with non-coreference links only
    "N1": (N, N, f"muc 0, {PERFECT}"),
    "N2": (N, M, "muc 0, blanc 0, lea 0"),
    "N3": (N, "ab cde f", "blanc .73333 1 .84615, lea 1/6"),
    "N4": (N, "a b c x y z", "muc 0, blanc .2, lea 1/2"),
    "N5": (N, "abcxyz", "blanc 0, lea 0"),
    "N6": (N, "ab cxy z", "blanc .13333 .18182 .15385, lea 0"),
    # the example of Pradhan et al. (2014) and of Moosavi & Strube (2016)
    "papers": (
        *("abc defg", "ab cd fghi"),
        "muc 2/5, b_cubed 5/12 1/2, ceaf_m 4/7 1/2, ceaf_e 13/20 13/30, blanc 4/9 13/40 25/68, "
        "lea 5/21 1/3",
    ),
}


def parsed(text):
    return [list(cluster) for cluster in text.split()]


def scores_of(gold, predicted):
    return cluster_scores([parsed(gold)], [parsed(predicted)])


def numbers_of(text):
    """The measures of a case with recall, precision and F, in per cent."""
    for part in text.split(", "):
        name, *numbers = part.split()
        r, p, *f = [float(Fraction(number)) for number in numbers * (3 if len(numbers) == 1 else 1)]
        yield name, [100 * n for n in (r, p, *(f or [2 * r * p / (r + p)]))]


@pytest.mark.parametrize("name", CASES)
def test_the_cases_of_the_reference_scorer(name):
    gold, predicted, expected = CASES[name]
    scores = scores_of(gold, predicted)
    for measure, (recall, precision, f) in numbers_of(expected):
        found = getattr(scores, measure)
        assert tuple(found) == pytest.approx((precision, recall, f), abs=1e-3), measure


@pytest.mark.parametrize("name", CASES)
def test_all_measures_of_the_cases_equal_their_twins(name):
    gold, predicted, _ = CASES[name]
    first = {m: k for k, cluster in reversed([*enumerate(parsed(predicted))]) for m in cluster}
    once = [
        [m for m in dict.fromkeys(cluster) if first[m] == k]
        for k, cluster in enumerate(parsed(predicted))
    ]
    check(scores_of(gold, predicted), [(sets(parsed(gold)), sets(once))])


# --------------------------------------------------------------------------- slow twins


def sets(document):
    return [frozenset(cluster) for cluster in document if cluster]


def partition_sets(ids):
    return sets([i for i, each in enumerate(ids) if each == c] for c in {*ids} - {None})


def pairs(cluster):
    return {frozenset(pair) for pair in combinations(sorted(cluster), 2)}


def links(document):
    return set().union(*map(pairs, document))


def non_links(document):
    return pairs(frozenset().union(*document)) - links(document)


def entity_links(cluster):
    """With the link of a mention to itself, if it is the only one."""
    return pairs(cluster) if len(cluster) > 1 else {cluster}


def mentions(gold, predicted):
    return len(frozenset().union(*gold) & frozenset().union(*predicted)), sum(map(len, gold))


def muc(gold, predicted):
    missing = 0
    for g in gold:
        parts = {g & p for p in predicted if g & p}
        missing += len(parts) + len(g.difference(*parts)) - 1
    needed = sum(len(g) - 1 for g in gold)
    return needed - missing, needed


def b_cubed(gold, predicted):
    shares = []
    for g in gold:
        for mention in g:
            own: set[str] | frozenset[str] = next(
                (p for p in predicted if mention in p), frozenset()
            )
            shares.append(Fraction(len(g & own), len(g)))
    return sum(shares), len(shares)


def best_alignment(gold, predicted, similarity):
    few, many = sorted((gold, predicted), key=len)
    return max(
        sum(similarity(a, b) for a, b in zip(few, chosen, strict=True))
        for chosen in permutations(many, len(few))
    )


def ceaf_m(gold, predicted):
    return best_alignment(gold, predicted, lambda a, b: len(a & b)), sum(map(len, gold))


def phi4(a, b):
    return Fraction(2 * len(a & b), len(a) + len(b))


def ceaf_e(gold, predicted):
    return best_alignment(gold, predicted, phi4), len(gold)


def lea(gold, predicted):
    resolved = Fraction(0)
    for g in gold:
        right = sum(len(entity_links(g) & entity_links(p)) for p in predicted)
        resolved += len(g) * Fraction(right, len(entity_links(g)))
    return resolved, sum(map(len, gold))


def pairwise(gold, predicted):
    return len(links(gold) & links(predicted)), len(links(gold))


def non_links_recall(gold, predicted):
    return len(non_links(gold) & non_links(predicted)), len(non_links(gold))


def twin(recall, documents):
    """Precision, recall and F from the sums over documents, and the denominator of the recall."""
    counts = [(*recall(gold, predicted), *recall(predicted, gold)) for gold, predicted in documents]
    right, whole, right_predicted, predicted = map(sum, zip(*counts, strict=True))
    p, r = Fraction(right_predicted, predicted or 1), Fraction(right, whole or 1)
    return (100 * p, 100 * r, 100 * 2 * p * r / (p + r) if p + r else 0), whole


def blanc_twin(documents):
    kinds = [twin(pairwise, documents), twin(non_links_recall, documents)]
    present = [ratios for ratios, whole in kinds if whole]
    return [sum(each) / len(present) for each in zip(*present, strict=True)] or (0, 0, 0)


TWINS = {twin.__name__: twin for twin in (mentions, muc, b_cubed, ceaf_e, ceaf_m, lea, pairwise)}


def check(scores, documents):
    assert scores.documents == len(documents)
    assert tuple(scores.blanc) == pytest.approx([float(n) for n in blanc_twin(documents)])
    for name, recall in TWINS.items():
        expected = [float(n) for n in twin(recall, documents)[0]]
        assert tuple(getattr(scores, name)) == pytest.approx(expected), name


# --------------------------------------------------------------------------- drawn partitions

ids = st.sampled_from([None, "v", "w", "x", "y", "z"])
one_document = st.lists(st.tuples(ids, ids), max_size=9)
some_documents = st.lists(one_document, min_size=1, max_size=3)


def sides(drawn):
    """The gold and the predicted partitions of drawn documents."""
    return [[[pair[side] for pair in document] for document in drawn] for side in (0, 1)]


@given(drawn=some_documents, singletons=st.booleans())
@quick
def test_equal_to_the_twins(drawn, singletons):
    gold, predicted = sides(drawn)
    documents = [
        tuple(
            [c for c in partition_sets(partition) if singletons or len(c) > 1] for partition in both
        )
        for both in zip(gold, predicted, strict=True)
    ]
    check(partition_scores(gold, predicted, singletons=singletons), documents)


@given(drawn=some_documents)
@quick
def test_gold_and_predicted_exchanged(drawn):
    gold, predicted = sides(drawn)
    there, back = partition_scores(gold, predicted), partition_scores(predicted, gold)
    kinds = [
        {kind for kind in (links, non_links) if any(kind(partition_sets(d)) for d in side)}
        for side in (gold, predicted)
    ]
    for name in MEASURES:
        if name != "blanc" or kinds[0] == kinds[1]:
            n, m = getattr(there, name), getattr(back, name)
            assert (n.precision, n.recall, n.f) == pytest.approx((m.recall, m.precision, m.f)), name


def test_blanc_of_exchanged_partitions_may_differ():
    assert scores_of(M, "ab cde f").blanc.f == pytest.approx(42.105, abs=1e-3)
    assert scores_of("ab cde f", M).blanc.f == pytest.approx(42.105 / 2, abs=1e-3)


@given(drawn=some_documents)
@quick
def test_identical_partitions(drawn):
    gold, _ = sides(drawn)
    documents = [partition_sets(partition) for partition in gold]
    scores = partition_scores(gold, gold)
    has_links = any(len(c) > 1 for d in documents for c in d)
    expected = {
        **dict.fromkeys(MEASURES, any(documents)),
        **dict.fromkeys(("muc", "pairwise"), has_links),
        "blanc": has_links or any(len(d) > 1 for d in documents),
    }
    for name, is_perfect in expected.items():
        assert getattr(scores, name) == Ratios(*[100.0 * is_perfect] * 3), name


@given(drawn=some_documents, seed=st.integers(0, 9))
@quick
def test_names_of_clusters_and_orders_do_not_matter(drawn, seed):
    scores = partition_scores(*sides(drawn))
    names = dict(zip("vwxyz", random.Random(seed).sample(range(9), 5), strict=True))
    renamed = [
        random.Random(seed).sample(
            [(names.get(g), None if p is None else (p, seed)) for g, p in document], len(document)
        )
        for document in drawn
    ]
    again = partition_scores(*sides(random.Random(seed).sample(renamed, len(renamed))))
    for name in MEASURES:
        assert tuple(getattr(again, name)) == pytest.approx(tuple(getattr(scores, name))), name
    assert again.conll == pytest.approx(scores.conll)


def test_sums_over_documents():
    # 1 of 1 and 1 of 4 links: neither the mean of 100 and 25, nor links between documents
    gold: list[list[str | None]] = [["A", "A"], ["A"] * 5]
    predicted: list[list[str | None]] = [["x", "x"], ["x", "x", "y", "z", None]]
    scores = partition_scores(gold, predicted)
    assert scores.muc == pytest.approx((100, 40, 57.142857))
    assert scores.pairwise == pytest.approx((100, 100 * 2 / 11, 100 * 4 / 13))
    assert scores.b_cubed.recall == pytest.approx(100 * (2 + 4 / 5 + 2 / 5) / 7)
    assert scores.ceaf_e.recall == pytest.approx(100 * (1 + 4 / 7) / 2)
    twice = partition_scores(gold * 2, predicted * 2)
    for name in MEASURES:
        assert tuple(getattr(twice, name)) == pytest.approx(tuple(getattr(scores, name))), name


# --------------------------------------------------------------------------- large documents


def dense_alignment(gold, predicted, similarity):
    """The best alignment of two partitions by a matrix of all pairs of clusters."""
    rows, columns = (
        {c: i for i, c in enumerate(dict.fromkeys(side))} for side in (gold, predicted)
    )
    matrix = np.zeros((len(rows), len(columns)))
    n_gold, n_predicted = Counter(gold), Counter(predicted)
    for (g, p), n in Counter(zip(gold, predicted, strict=True)).items():
        matrix[rows[g], columns[p]] = similarity(n, n_gold[g] + n_predicted[p])
    return matrix[linear_sum_assignment(matrix, maximize=True)].sum()


def shapes(n):
    """Partitions that overlap in chains, grids and stars, or anyhow."""
    draw = random.Random(1)
    side = int(n**0.5)
    yield [i // 2 for i in range(n)], [(i + 1) // 2 for i in range(n)]
    yield [i // 3 for i in range(n)], [(i + 1) // 3 for i in range(n)]
    yield [i // side for i in range(n)], [i % side for i in range(n)]
    yield [0] * n, list(range(n))
    yield list(range(n)), list(range(n))
    for k in (side, n // 2):
        yield draw.choices(range(k), k=n), draw.choices(range(k), k=n)


def test_alignments_of_many_clusters():
    for gold, predicted in shapes(200):
        scores = partition_scores([gold], [predicted])
        best = dense_alignment(gold, predicted, lambda n, _: n)
        assert scores.ceaf_m.recall == pytest.approx(100 * best / 200)
        best = dense_alignment(gold, predicted, lambda n, both: 2 * n / both)
        assert scores.ceaf_e.recall == pytest.approx(100 * best / len({*gold}))
        assert scores.ceaf_e.precision == pytest.approx(100 * best / len({*predicted}))


def test_ten_thousand_items():
    for gold, predicted in shapes(10_000):
        begun = time.process_time()
        scores = partition_scores([gold], [predicted])
        assert time.process_time() - begun < 3.0
        assert 0 < scores.conll <= 100


# --------------------------------------------------------------------------- input and output


def test_clusters_of_a_partition():
    assert clusters([]) == []
    assert clusters(iter(["b", None, "a", "b", 0])) == [[0, 3], [2], [4]]
    assert clusters(np.array([7, 7, 3])) == [[0, 1], [2]]


def test_partitions_of_any_kind():
    expected = partition_scores([["a", "a", "b"]], [["a", "b", "b"]])
    assert partition_scores([np.array([1, 1, 2])], [(1, 2.5, 2.5)]) == expected
    assert partition_scores(iter([iter("aab")]), iter([iter("abb")])) == expected
    assert cluster_scores([[{1, 2}, {3}, []]], [({1}, {2, 3})]) == expected


def test_nothing_to_score():
    zero = Ratios(0.0, 0.0, 0.0)
    empty: tuple[list[list[None]], ...] = ([], [[]], [[None, None]])
    for documents in empty:
        scores = partition_scores(documents, documents)
        assert scores == PartitionScores(len(documents), *[zero] * len(MEASURES))
    assert partition_scores([["a", "a"]], [[None, None]]).score == 0
    assert partition_scores([[None, None]], [["a", "a"]]).score == 0


def test_without_singletons():
    gold, predicted = [["a", "a", "b", "c"]], [["a", "a", "b", "b"]]
    scores = partition_scores(gold, predicted, singletons=False)
    assert scores == partition_scores([["a", "a", None, None]], predicted)
    assert scores.mentions == pytest.approx((50, 100, 200 / 3))


@pytest.mark.parametrize(
    ("score", "gold", "predicted", "message"),
    [
        (partition_scores, [["a"]], [], "found 0 predicted documents, expected 1 as in gold"),
        (partition_scores, [[1], [1, 2]], [[1], [1]], "document 2: found 1 predicted items, exp"),
        (partition_scores, [1, 2], [1, 2], "document 1: found 1, expected a list"),
        (partition_scores, ["ab"], ["ab"], "document 1: found 'ab', expected a list"),
        (partition_scores, [[[]]], [[1]], "document 1: found an unhashable type: 'list', expected"),
        (cluster_scores, [[["a"]]], [], "found 0 predicted documents, expected 1 as in gold"),
        (cluster_scores, [["ab"]], [[]], "document 1: found 'ab', expected a cluster as a list"),
        (cluster_scores, [[]], [[1]], "document 1: found 1, expected a cluster as a list of men"),
        (cluster_scores, [[], [[[0, 1]]]], [[], []], "document 2: found an unhashable type: 'list"),
        (cluster_scores, [[[1, 1]]], [[]], "found the gold mention 1 twice, expected it in one"),
        (cluster_scores, [[[1], [1]]], [[]], "found the gold mention 1 twice, expected it in one"),
    ],
)
def test_wrong_input(score, gold, predicted, message):
    with pytest.raises(BadData, match=message):
        score(gold, predicted)


def test_scores_as_text_and_as_json():
    scores = scores_of("abc defg", "ab cd fghi")
    assert isinstance(scores, PartitionScores)
    assert scores.score == scores.conll == pytest.approx((40 + 45.4545 + 52) / 3, abs=1e-4)
    lines = str(scores).splitlines()
    assert lines[0] == "1 document; CoNLL average 45.82"
    assert lines[6] == "  CEAF-m        50.00   57.14   53.33"
    assert len(lines) == 2 + len(MEASURES)
    read = json.loads(json.dumps(scores.as_json()))
    assert list(read) == ["documents", "conll", *MEASURES]
    assert read["lea"] == scores.lea._asdict()
    assert (read["documents"], read["conll"]) == (1, scores.conll)
