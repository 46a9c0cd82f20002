"""Encoders: vectors of words beside the features of a model, frozen or learned inside the search.

base.py         what an encoder is, and what holds for any of them
loading.py      load_encoder: an encoder by its name, from a folder, or an object
weights.py      where the weights of known encoders are, by their hash
pretrained.py   BertEncoder: words to pieces, batches, threads
pieces.py       the pieces of words, and windows of long sentences
bert.py         the forward pass of BERT in NumPy
kernels.py      its element-wise passes, compiled
cache.py        CachedEncoder: vectors on disk
linear.py       LinearEncoder: a linear layer that learns
frozen.py       frozen: an encoder that could learn, and does not
torch.py        TorchEncoder: a BERT that learns; imported only where it is used
schedule.py     Schedule: how fast it learns
"""

from laso.encoders.base import (
    Encoder,
    LearningEncoder,
    dimensions_of,
    encoded,
    fingerprint_of,
    name_of,
)
from laso.encoders.cache import CachedEncoder
from laso.encoders.frozen import frozen
from laso.encoders.linear import LinearEncoder
from laso.encoders.loading import load_encoder
from laso.encoders.pretrained import BertEncoder
from laso.encoders.schedule import Schedule

__all__ = [
    "BertEncoder",
    "CachedEncoder",
    "Encoder",
    "LearningEncoder",
    "LinearEncoder",
    "Schedule",
    "dimensions_of",
    "encoded",
    "fingerprint_of",
    "frozen",
    "load_encoder",
    "name_of",
]
