"""Learning and decoding on many workers: shards, and the files through which they see weights."""
