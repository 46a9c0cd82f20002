"""Writes the model files of the corpus: ``python -m tests.fuzz.seeds``."""

from __future__ import annotations

from laso import Chunker, Clusterer, JointTagger, Parser, Tagger, exact, sgd, standard
from laso.engine.weights.row_layouts import MANY_LABELS
from tests.fuzz.targets import CORPUS, ITEMS

X = [["the", "kettle", "boiled"], ["a", "dog", "slept"], ["dogs", "slept"]]
Y = [["D", "N", "V"], ["D", "N", "V"], ["N", "V"]]
TEXTS = {
    "a.tpl": 'w[-1..1]\nw[0]|pos[0]\nlabel[-1]\nw.suffix2.lower[0]\nw.test("^[A-Z]")[0]\nbias\n',
    "b.tpl": "# CRF++\nU00:%x[-2,0]\nU01:%x[0,0]/%x[0,1]\nB\n",
    "c.tpl": '*\nu:wrd=%x[0,0]\nu:suf=%m[0,0,".?.?$"]\nb:%t[0,0,"^\\u"]\n',
    "a.txt": "The DT B-NP\ncat NN I-NP\n\nsat VBD B-VP\n. . O\n",
    "b.txt": "a\tX\r\nb\tY\r\n\r\nc\tX\r\n",
    "a.conllu": "# text = Dogs sleep\n1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n"
    "2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n2\tsleep\tsleep\tVERB\tVBP\t_\t0\troot\t_\t_\n\n",
    "b.conllu": "".join(
        f"{i}\t{word}\t_\tX\tX\t_\t{head}\tdep\t_\t_\n"
        for i, (word, head) in enumerate(zip("abcdef", (4, 5, 6, 0, 6, 1), strict=True), start=1)
    ),
    "a.ptpl": 'bias\nw[s0]|pos[b0]\nlabel[s0.l1]\ndistance[s0,b0]\nw.test("^a|b")[b1]\n'
    "lefts[s0]|rightset[b0]\npos[s0.r1.r1]\n",
    "a.objects": "a",
    "a.ctpl": "bias\nname.words[any]|kind[item]\n# members\nkind[last-1]|kind[first]\nsize[all]\n"
    "rank[last]|recent[all]\nname.edit[most]|name.equal[earlier]|position.difference[last]\n",
    "a.items": '{"items": [{"name": "Ann Lee", "kind": "A"}, {"name": "A. Lee"}, {"kind": null}], '
    '"clusters": [1, 1, null]}\n{"items": [{"name": "Bo", "cluster": "b"}]}\n',
    "a.conll": "#begin document (d/x); part 000\n"
    "d/x 0 0 Ann NNP (S(NP*) - - - Ann (PERSON) (1)\n"
    "d/x 0 1 lost VBD (VP* - - - Ann * -\n"
    "d/x 0 2 her PRP$ (NP* - - - Ann * (2|(1)\nd/x 0 3 keys NNS *))) - - - Ann * 2)\n\n"
    "d/x 0 0 She PRP (S(NP*) - - - - * (1)\nd/x 0 1 cried VBD (VP*)) - - - - * -\n\n"
    "#end document\n",
    "b.conll": "#begin document d\n1 0 0 Ann (a)\n1 0 1 saw (b|(b\n1 0 2 it b)|b)|(a)\n\n"
    "#end document\n"
    "#begin document (e); part 1\n",
    "a.jsonl": '{"tokens": ["The", "cat"], "labels": ["DT", "NN"]}\n{"text": "It sat."}\n',
}
CLUSTERS = [
    "bias",
    "name.words[any]",
    "kind[item]|kind[last]|kind[last-1]",
    "name.edit[most]|size[all]",
    "kind.equal[earlier]",
    "rank[last]|recent[all]",
]


def main() -> None:
    """Write all files; they are small and made up."""
    CORPUS.mkdir(exist_ok=True)
    for name, text in TEXTS.items():
        (CORPUS / name).write_bytes(text.encode())
    features = ["w[0]", "w.suffix2[0]", 'w.test("^[a-d]")[0]', "label[-1]"]
    tagger = Tagger(features=features, queue=2, epochs=2).fit(X, Y)
    tagger.save(CORPUS / "tagger.laso", training=True)
    tagger.save(CORPUS / "plain.laso", compress=False)
    Tagger(features=features, queue=2, epochs=2, shards=2, mixing="updates").fit(X, Y).save(
        CORPUS / "shards.laso", training=True
    )
    many = [[str(i) for i in range(MANY_LABELS + 1)]]
    sparse = Tagger(features=["w[0]", "label[-1]"], queue=1, epochs=2).fit(many, many)
    sparse.save(CORPUS / "sparse.laso", training=True)
    sparse.save(CORPUS / "plain-sparse.laso", compress=False)
    layers = [
        [(word, tag, "O") for word, tag in zip(*pair, strict=True)]
        for pair in zip(X, Y, strict=True)
    ]
    JointTagger(layers=["pos", "chunk"], queue=2, epochs=2).fit(layers).save(
        CORPUS / "joint.laso", training=True
    )
    trees = [[(2, "det"), (3, "nsubj"), (0, "root")]] * 2 + [[(2, "nsubj"), (0, "root")]]
    places = ["w[s0]", "w[s0]|w[b0]", 'w.test("^[a-d]")[s1]', "label[s0.l1]", "distance[s0,b0]"]
    parser = Parser(features=places, queue=2, epochs=2)
    parser.fit([[(w, "X", "X") for w in x] for x in X], trees)
    parser.save(CORPUS / "parser.laso", training=True)
    parser.save(CORPUS / "plain-parser.laso", compress=False)
    attributes = [[{"w": word, "n": 2.0} for word in sentence] for sentence in X]
    Tagger(queue=exact(), update=sgd(), strategy=standard, epochs=2).fit(attributes, Y).save(
        CORPUS / "crf.laso", training=True
    )
    chunks = [[("the", "B-NP"), ("kettle", "I-NP"), ("boiled", "O")]] * 2
    Chunker(features=["w[each]", "w[first-1]", "length", "label[-1]"], epochs=2).fit(chunks).save(
        CORPUS / "chunker.laso", training=True
    )
    clusterer = Clusterer(queue=2, epochs=2, features=CLUSTERS)
    items = [[{"name": name, "kind": name[0]} for name in x] for x in ITEMS]
    clusterer.fit(items, [[0, 1, 0], ["a", "a"], []])
    clusterer.save(CORPUS / "clusterer.laso", training=True)
    clusterer.save(CORPUS / "plain-clusterer.laso", compress=False)


if __name__ == "__main__":
    main()
