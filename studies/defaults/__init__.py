"""The study behind the defaults: learners, costs and templates on several corpora."""
