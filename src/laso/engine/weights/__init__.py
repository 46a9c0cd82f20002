"""The weight table: layouts of rows, the hash table, filters, compact forms."""
