"""The meaning of a query and its evaluation: as text, as JSON, with the tree of joins."""
