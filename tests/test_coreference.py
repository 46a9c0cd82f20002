"""Coreference: CoNLL files, heads of mentions, what mentions say, and predictions of a preset."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laso import BadData, Clusterer, load_model
from laso.data.constituents import constituents, head_word, heads_of
from laso.data.coreference import Mention, Text, in_order, read_coreference, write_coreference
from laso.errors import InputError
from laso.metrics import clusters
from laso.tasks.clustering.coreference import FIELDS, TEMPLATES, mentions_of
from laso.tasks.clustering.templates import OF_CLUSTERS, parse_templates
from tests.spaces import quick


def read(text: str) -> list[tuple[Text, list[str]]]:
    return list(read_coreference(io.StringIO(text)))


def document(*sentences: list[str], name: str = "#begin document (d); part 0") -> str:
    """A file of words with the bracket column, with a dot for none: ``Ann/(1) came``."""
    lines = [name]
    for sentence in sentences:
        for i, token in enumerate(sentence):
            word, _, brackets = token.partition("/")
            lines.append(f"d 0 {i} {word} _ {brackets or '-'}")
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


# --------------------------------------------------------------------------- files


@st.composite
def texts(draw: Any) -> tuple[Text, list[str]]:
    """Texts with mentions that nest and cross as they like."""
    sizes = draw(st.lists(st.integers(1, 6), max_size=3))
    word = st.sampled_from(["Ann", "her", "(", "#a", "-", "x|y", "b)", "été"])
    sentences = [[draw(word) for _ in range(n)] for n in sizes]
    places = [Mention(s, i, j) for s, n in enumerate(sizes) for i in range(n) for j in range(i, n)]
    chosen = draw(st.lists(st.sampled_from(places), unique=True, max_size=8)) if places else []
    text = Text(sentences, in_order(chosen), name=draw(st.sampled_from(["d/0", "a/b/3", "n/012"])))
    ids = [draw(st.sampled_from(["0", "1", "27", "x"])) for _ in chosen]
    return text, ids


def crosses(text: Text, ids: list[str]) -> bool:
    """Whether two mentions of one entity cross, which brackets of one number cannot tell."""
    pairs = list(zip(text.mentions, ids, strict=True))
    return any(
        a == b and m.sentence == o.sentence and m.first < o.first <= m.last < o.last
        for m, a in pairs
        for o, b in pairs
    )


@quick
@given(texts())
def test_what_is_written_is_read_again(drawn):
    text, ids = drawn
    if crosses(text, ids):
        return
    [(again, others)] = read(write_coreference(text, ids))
    assert (again.sentences, again.mentions, others) == (text.sentences, text.mentions, ids)
    assert again.name == text.name
    assert write_coreference(again, others) == write_coreference(text, ids)


FULL = """#begin document (bc/x); part 003
bc/x 3 0 The   DT  (TOP(S(NP(NP*  - - - Ann  (ORG*   (1
bc/x 3 1 king  NN  *)            - - - Ann  *       -
bc/x 3 2 of    IN  (PP*          - - - Ann  *       -
bc/x 3 3 Troy  NNP (NP*)))       - - - Ann  *)      1)|(2)
bc/x 3 4 saw   VBD (VP*          - - - Ann  *       -
bc/x 3 5 Troy  NNP (NP*)         - - - Ann  (GPE)   (2)
bc/x 3 6 .     .   *)))          - - - Ann  *       -

#end document
"""


def test_columns_of_a_full_file():
    [(text, ids)] = read(FULL)
    assert text.name == "bc/x/003"
    assert text.mentions == [Mention(0, 0, 3), Mention(0, 3, 3), Mention(0, 5, 5)]
    assert ids == ["1", "2", "2"]
    assert text.types == ["ORG", None, "GPE"]
    assert text.heads == [1, 3, 5]
    assert text.speakers == [["Ann"] * 7]
    assert text.tags[0][:4] == ["DT", "NN", "IN", "NNP"]
    assert read(write_coreference(text, ids))[0] == (text, ids)  # with all columns
    others = write_coreference(text, ["a", "b", "b"])
    assert others == FULL.replace("(1\n", "(a\n").replace("1)|(2)", "a)|(b)").replace("(2)", "(b)")
    items = mentions_of(text)
    assert [item["head"] for item in items] == ["king", "troy", "troy"]
    assert [item["speaker"] for item in items] == ["Ann"] * 3
    assert [item["type"] for item in items] == ["ORG", None, "GPE"]
    assert [item["form"] for item in items] == ["noun", "name", "name"]


def test_an_empty_last_column_keeps_its_place():
    lines = ["#begin document (d); part 0", "d\t0\t0\tAnn\t_\t(0)", "d\t0\t1\tcame\t_\t", ""]
    file = "\n".join([*lines, "#end document", ""])
    [(text, ids)] = read_coreference(io.StringIO(file))
    assert (text.sentences, ids) == ([["Ann", "came"]], ["0"])
    assert write_coreference(text, [0]) == file.replace("came\t_\t", "came\t_\t-")


def test_documents_parts_and_comments():
    first = document(["Ann/(1)", "ran"])
    second = document([], name="#begin document plain").replace("#end document\n", "")
    pairs = read("# a comment\n\n" + first + "\n" + second)
    assert [text.name for text, _ in pairs] == ["d/0", "plain"]
    assert [ids for _, ids in pairs] == [["1"], []]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("Ann\n", 1, "found 'Ann', expected '#begin document'"),
        (document(["Ann/(1"]), 2, r"found \(1, expected 1\) in the same sentence"),
        (document(["Ann/(1"], ["ran/1)"]), 2, r"found \(1, expected 1\) in the same sentence"),
        (document(["Ann/1)"]), 2, r"found '1\)', expected \(1 before it"),
        (document(["Ann", "ran/(1)|2)"]), 3, r"found '2\)', expected \(2 before it"),
        (document(["Ann/(1)|(2)"]), 2, "found a mention of '2' that is one of '1'"),
        (document(["Ann/1"]), 2, "found '1' in the last column, expected a mention's bracket"),
        (document(["Ann/()"]), 2, r"found '\(\)' in the last column"),
        (document(["Ann/(1)|"]), 2, "found '' in the last column"),
        ("#begin document (d); part 0\nAnn (1)\n", 2, "found 2 columns, expected at least 5"),
    ],
)
def test_mistakes_in_files_have_a_line(text, line, message, tmp_path):
    path = tmp_path / "a.conll"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadData, match=message) as error:
        list(read_coreference(str(path)))
    assert (error.value.file, error.value.line) == (str(path), line)


TABLE: dict[str, Any] = {"sentences": [["Ann", "lost", "her", "keys"]], "mentions": [(0, 2, 3)]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mentions": [(0, 0)]}, r"found the mention \(0, 0\), expected sentence, first word"),
        ({"mentions": [(0, 3, 4)]}, "expected numbers from 0 of a sentence"),
        ({"mentions": [(1, 0, 0)]}, "expected numbers from 0 of a sentence"),
        ({"mentions": [(0, 2, 1)]}, "expected numbers from 0 of a sentence"),
        ({"mentions": ["abc"]}, "found the mention 'abc'"),
        ({"types": ["PERSON", None]}, "found 2 types of 1 mentions"),
        ({"heads": [1]}, r"found the head 1 of the mention \(0, 2, 3\)"),
        ({"heads": [3, 3]}, "found 2 heads of 1 mentions"),
        ({"tags": [["N"]]}, "found tags of other lengths than the sentences"),
        ({"speakers": []}, None),
    ],
)
def test_tables_are_checked(change, message):
    if message is None:
        assert Text.of({**TABLE, **change}).speakers == []
        return
    with pytest.raises(InputError, match=message):
        Text.of({**TABLE, **change})
    with pytest.raises(BadData, match=rf"sentence 2: .*{message}"):
        Clusterer(preset="coreference").fit([TABLE, {**TABLE, **change}], [[0], [0]])


@pytest.mark.parametrize("value", [None, "text", 3, {}, {"sentences": []}, [["a"]]])
def test_what_is_no_text_is_told(value):
    with pytest.raises(BadData, match="expected a document: a table with sentences"):
        Text.of(value)


# --------------------------------------------------------------------------- heads


TREES = [  # words with their tags, the parse column, the head of the whole
    ("the/DT old/JJ king/NN", "(NP* * *)", "king"),
    ("Ann/NNP 's/POS house/NN", "(NP(NP* *) *)", "house"),
    ("the/DT Lord/NNP of/IN the/DT Manor/NNP", "(NP(NP* *) (PP* (NP* *)))", "Lord"),
    ("a/DT man/NN who/WP ran/VBD", "(NP(NP* *) (SBAR(WHNP*) (S(VP*))))", "man"),
    ("Ann/NNP ,/, a/DT nurse/NN", "(NP(NP*) * (NP* *))", "Ann"),
    ("a/DT Troy/NNP street/NN map/NN", "(NP* (NML* *) *)", "map"),
    ("the/DT poor/JJ", "(NP* *)", "poor"),
    ("running/VBG fast/RB", "(S(VP* (ADVP*)))", "fast"),
    ("her/PRP$", "(NP*)", "her"),
]


@pytest.mark.parametrize(("words", "parse", "head"), TREES)
def test_heads_of_constituents(words, parse, head):
    forms, tags = zip(*(word.rsplit("/", 1) for word in words.split()), strict=True)
    tree = constituents(parse.split(), tags)
    assert tree is not None
    assert forms[head_word(tree)] == head
    assert heads_of(tree, [(0, len(forms) - 1), (-1, 0)])[1] is None


@pytest.mark.parametrize(
    "parse", ["(NP* *", "(NP* *))", "* *", "- -", "NP *)", "(NP*) (NP*)", "(NP* )*", "_ _"]
)
def test_columns_without_a_tree(parse):
    assert constituents(parse.split(), ["DT", "NN"]) is None
    cells = parse.split()
    lines = [f"d 0 {i} w{i} NN {cell} - - - - * (1)" for i, cell in enumerate(cells)]
    [(text, _)] = read("#begin document (d); part 0\n" + "\n".join(lines) + "\n")
    assert text.heads == []
    assert mentions_of(text)[0]["head"] == "w0"


# --------------------------------------------------------------------------- mentions

SAID = """
" I saw Mrs. Bell , " said the old man to his wife .
She came from the house of the king .
"""
SAID_MENTIONS = [(0, 1, 1), (0, 3, 4), (0, 8, 10), (0, 12, 13), (0, 12, 12), (1, 0, 0), (1, 3, 7)]


def said() -> Text:
    sentences = [line.split() for line in SAID.strip().splitlines()]
    return Text.of({"sentences": sentences, "mentions": SAID_MENTIONS})


def test_what_rules_say_of_mentions():
    items = mentions_of(said())
    told = [[i[name] for i in items[1:]] for name in ("head", "form", "gender", "number", "quoted")]
    assert told == [
        ["bell", "man", "wife", None, None, "house"],
        ["name", "noun", "noun", "pronoun", "pronoun", "noun"],
        ["female", "male", "female", "male", "female", None],
        ["one"] * 6,
        ["yes", "no", "no", "no", "no", "no"],
    ]
    assert (items[0]["form"], items[0]["pronoun"], items[0]["quoted"]) == ("pronoun", "i", "yes")
    assert [item["determiner"] for item in items] == [None, "none", "the", "my", None, None, "the"]
    assert [item["owner"] for item in items] == [None, None, None, "he", None, None, None]
    assert [item["sentence"] for item in items] == [0, 0, 0, 0, 0, 1, 1]
    assert items[-1]["span"] == (18, 23)
    assert items[1]["title"] == "mrs"
    assert items[1]["names"] == ["bell"]


def test_every_mention_has_every_field():
    for item in mentions_of(said()):
        assert set(item) == set(FIELDS)
    atoms = [atom for template in parse_templates(TEMPLATES) for atom in template.atoms]
    assert {atom.column for atom in atoms} <= {*FIELDS, *OF_CLUSTERS, "position"}


def test_the_speaker_of_words_and_quotations():
    [(text, _)] = read(FULL)
    assert {item["speaker"] for item in mentions_of(text)} == {"Ann"}
    single = Text.of({"sentences": [["I", "ran", "."]], "mentions": [(0, 0, 0)]})
    assert mentions_of(single)[0]["speaker"] is None
    assert mentions_of(single)[0]["quoted"] == "no"
    assert mentions_of(Text([])) == []


# --------------------------------------------------------------------------- the preset


def corpus(n: int) -> str:
    """Texts in which she is Ann and he is Bob, and a name is always the same person."""
    files = []
    for i in range(n):
        one, other = ("Ann/(0)", "she/(0)"), ("Bob/(1)", "he/(1)")
        if i % 2:
            one, other = other, one
        files.append(
            document(
                [one[0], "met", other[0], "."],
                ["Then", one[1], "ran", "and", other[1], "sat", "."],
                ["They/(2)", "saw", one[0], "."],
            )
        )
    return "".join(files)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    (folder / "train.conll").write_text(corpus(6), encoding="utf-8")
    (folder / "test.conll").write_text(corpus(2), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def model(files) -> Clusterer:
    return Clusterer(preset="coreference", epochs=4).fit(str(files / "train.conll"))


def test_a_text_is_learned_and_predicted(model, files, tmp_path):
    path = files / "test.conll"
    pairs = read(path.read_text(encoding="utf-8"))
    texts, gold = zip(*pairs, strict=True)
    assert model.predict(list(texts)) == model.predict(path) == [[0, 1, 0, 1, 2, 0]] * 2
    assert model.score(path) == model.score(list(texts), list(gold)) == 1.0
    tables = [{"sentences": t.sentences, "mentions": t.mentions} for t in texts]
    assert model.predict(tables) == model.predict(path)
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model").predict(path) == model.predict(path)
    shown = model.explain(texts[0])
    assert shown["decisions"][2]["text"] == "she joins Ann"
    assert shown["tokens"] == ["Ann", "Bob", "she", "he", "They", "Ann"]
    assert clusters(model.predict(path)[0]) == [[0, 2, 5], [1, 3], [4]]


def test_texts_as_lines_of_json(model, files, tmp_path):
    pairs = read((files / "train.conll").read_text(encoding="utf-8"))
    lines = [
        json.dumps({"sentences": t.sentences, "mentions": t.mentions, "clusters": ids})
        for t, ids in pairs
    ]
    path = tmp_path / "train.jsonl"
    path.write_text("\n\n".join(lines), encoding="utf-8")
    other = Clusterer(preset="coreference", epochs=4).fit(str(path))
    assert other.predict(files / "test.conll") == model.predict(files / "test.conll")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"a\.jsonl:1: found no document, expected #begin document"),
        ("{", r"a\.jsonl:1: found no JSON"),
        ('{"sentences": []}', r"a\.jsonl:1: found .*, expected a document"),
        (
            '{"sentences": [["a"]], "mentions": [[0, 0, 0]]}',
            r'a\.jsonl:1: found None for "clusters"',
        ),
        ('{"sentences": [], "mentions": [], "clusters": [1]}', 'found .* for "clusters"'),
    ],
)
def test_files_of_other_kinds_are_told(text, message, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadData, match=message):
        Clusterer(preset="coreference").fit(str(path))


def test_a_text_without_mentions(model):
    nothing = {"sentences": [["It", "rains"]], "mentions": []}
    assert model.predict([nothing, {"sentences": [], "mentions": []}]) == [[], []]
    assert write_coreference(Text.of(nothing), []).count("-") == 2
