"""sklearn-crfsuite and python-crfsuite on laso's engine: change the import, keep the program.

    from laso import CRF                      # was: from sklearn_crfsuite import CRF
    from laso import crfsuite as pycrfsuite   # was: import pycrfsuite

    CRF           the estimator
    Trainer       collects sequences, and trains a model that it writes to a file
    Tagger        opens such a file, and labels sequences
    ItemSequence  the features of a sequence, prepared once

Model files are those of laso: ``laso.load_model`` reads them, CRFsuite does not.
"""

from laso.crfsuite.crf import CRF
from laso.crfsuite.tagger import Tagger
from laso.crfsuite.trainer import CRFSuiteError, ItemSequence, Trainer

CRFSUITE_VERSION = "0.12.2"  # the version whose parameters and defaults are followed

__all__ = ["CRF", "CRFSUITE_VERSION", "CRFSuiteError", "ItemSequence", "Tagger", "Trainer"]
