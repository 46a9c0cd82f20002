"""python-crfsuite's calls on laso's engine: change the import, keep the program.

    from laso import crfsuite as pycrfsuite  # was: import pycrfsuite

    Trainer       collects sequences, and trains a model that it writes to a file
    Tagger        opens such a file, and labels sequences
    ItemSequence  the features of a sequence, prepared once

Model files are those of laso: ``laso.load_model`` reads them, CRFsuite does not.
"""

from laso.crfsuite.items import ItemSequence
from laso.crfsuite.trainer import CRFSuiteError, Trainer
from laso.estimators.crf_tagger import CRFTagger as Tagger

CRFSUITE_VERSION = "0.12.2"  # the version whose parameters and defaults are followed

__all__ = ["CRFSUITE_VERSION", "CRFSuiteError", "ItemSequence", "Tagger", "Trainer"]
