"""The known corpora: their homes, licences, files and checksums."""

from __future__ import annotations

from dataclasses import dataclass

CONLL2000 = "https://www.clips.uantwerpen.be/conll2000/chunking/"
CONLL2002 = "https://www.clips.uantwerpen.be/conll2002/ner/"
EWT = "https://github.com/UniversalDependencies/UD_English-EWT"
IMST = "https://github.com/UniversalDependencies/UD_Turkish-IMST"
LITBANK = "https://github.com/dbamman/litbank"
UNER = "https://github.com/UniversalNER"
WNUT17 = "https://github.com/leondz/emerging_entities_17"
# A maintained copy; sizes and checksums are those of the library "datasets".
_CONLL2002 = "https://raw.githubusercontent.com/teropa/nlp/master/resources/corpora/conll2002/"
_EWT = "https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/r2.16/"
_WNUT17 = "https://raw.githubusercontent.com/leondz/emerging_entities_17/master/"


@dataclass(frozen=True)
class File:
    """A file of a corpus; size and SHA-256 are those of the uncompressed text."""

    name: str
    sha256: str
    bytes: int
    url: str = ""  # empty: the user must get the file by hand


@dataclass(frozen=True)
class Corpus:
    """A corpus; ``files`` is empty if it has many files or its files change."""

    name: str
    what: str
    home: str
    licence: str
    files: tuple[File, ...] = ()

    @property
    def bytes(self) -> int:
        """The size of all files, in bytes."""
        return sum(file.bytes for file in self.files)

    @property
    def can_be_got(self) -> bool:
        """Whether all files can be downloaded."""
        return bool(self.files) and all(file.url for file in self.files)


CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus(
            "conll2000",
            "English chunks: words, POS tags, BIO tags",
            CONLL2000,
            "for research (Wall Street Journal, LDC)",
            (
                File(
                    "train.txt",
                    "82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea",
                    2842164,
                    CONLL2000 + "train.txt.gz",
                ),
                File(
                    "test.txt",
                    "73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628",
                    639396,
                    CONLL2000 + "test.txt.gz",
                ),
            ),
        ),
        Corpus(
            "conll2002",
            "Spanish (esp) and Dutch (ned) entities: words, POS tags, BIO tags",
            CONLL2002,
            "for research (EFE, De Morgen)",
            (
                File(
                    "esp.train",
                    "a20d95cab7d88a19a86f8c1ad6329325c99fbd9529ed978cbd7e31d4b01b4008",
                    2970825,
                    _CONLL2002 + "esp.train",
                ),
                File(
                    "esp.testa",
                    "85c17793b77881c53d19017d9d0f1e6fb98b7ddcab54a5f24b05ed1793103c87",
                    594058,
                    _CONLL2002 + "esp.testa",
                ),
                File(
                    "esp.testb",
                    "1f8f7a392c6d4979a5592a5794eed43d7869b46da6851bbcde99714149f1d016",
                    575807,
                    _CONLL2002 + "esp.testb",
                ),
                File(
                    "ned.train",
                    "0a419dcb356b62c8cff38515675550b3d5dbea9f45a1c4956328dbd5cc7fcdbc",
                    2377174,
                    _CONLL2002 + "ned.train",
                ),
                File(
                    "ned.testa",
                    "51259d4bfe52462f211d3d0b67173a7ecbfa296e199f6c6bd0895f4c78155057",
                    450785,
                    _CONLL2002 + "ned.testa",
                ),
                File(
                    "ned.testb",
                    "2aa748edb82e6f9c4d82e57a4bed69ded18cfa4803122c75070335d513517488",
                    814282,
                    _CONLL2002 + "ned.testb",
                ),
            ),
        ),
        Corpus(
            "ud_ewt",
            "English trees of Universal Dependencies 2.16, CoNLL-U",
            EWT,
            "CC BY-SA 4.0",
            (
                File(
                    "en_ewt-ud-train.conllu",
                    "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b",
                    14203025,
                    _EWT + "en_ewt-ud-train.conllu",
                ),
                File(
                    "en_ewt-ud-dev.conllu",
                    "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6",
                    1805545,
                    _EWT + "en_ewt-ud-dev.conllu",
                ),
                File(
                    "en_ewt-ud-test.conllu",
                    "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd",
                    1804515,
                    _EWT + "en_ewt-ud-test.conllu",
                ),
            ),
        ),
        Corpus(
            "wnut17",
            "English entities that are rare or new: words, BIO tags",
            WNUT17,
            "CC BY 4.0",
            (
                File(
                    "train.conll",
                    "731820e13f71af324c6b55a1575ec2ce59fbaa2a0806f8f0400b98d56cd6a7a5",
                    493781,
                    _WNUT17 + "wnut17train.conll",
                ),
                File(
                    "dev.conll",
                    "e053b752b8155113ca66e7db08af5f2f5f43ab993694e4774f1ec5bad42312d8",
                    114749,
                    _WNUT17 + "emerging.dev.conll",
                ),
                File(
                    "test.conll",
                    "2aa79b764e56ec9264a1b30fdd9b70195bd00ff400b62edd8f399d5f13c178f0",
                    192425,
                    _WNUT17 + "emerging.test.annotated",
                ),
            ),
        ),
        Corpus("ud_tr_imst", "Turkish trees of Universal Dependencies", IMST, "CC BY-NC-SA 3.0"),
        Corpus("uner", "entities in many languages: words, IOB2 tags", UNER, "CC BY-SA 4.0"),
        Corpus("litbank_coref", "English coreference in novels: CoNLL files", LITBANK, "CC BY 4.0"),
    )
}
