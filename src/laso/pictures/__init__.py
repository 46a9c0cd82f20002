"""Pictures of searches, answers and explanations: HTML and SVG made of plain data.

The page of ``laso serve``, the pictures of ``laso demo`` and ``laso trace``, those of the documents
and those of notebooks are all drawn here.
"""
