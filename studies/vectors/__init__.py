"""What vectors of an encoder bring, and what they cost.

systems   the tasks, and the systems of each: sparse features, vectors beside them, peers
run       settings chosen on held-out data, then scores on test data: encoder.json
report    encoder.md and the picture, from encoder.json alone
"""
