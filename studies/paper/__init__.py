"""The paper's tables and questions: one module for each experiment."""
