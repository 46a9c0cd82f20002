"""``laso serve``: a local page to look into a search, to steer it and to teach it.

``workbench`` answers with plain data, by the methods of an estimator alone; ``app`` speaks HTTP;
``page/`` is what a browser loads.
"""
