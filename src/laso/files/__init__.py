"""Files: models, and how they are written and opened.

container.py    the format of all model files: safetensors with a JSON header
compression.py  arrays as compressed bytes
weights.py      weight tables and the state of training as arrays
estimator.py    estimators as header and arrays
reference.py    the models of the reference engine
limits.py       what a model file may ask for
atomic.py       files that are written completely or not at all
opening.py      files that others have named
"""
