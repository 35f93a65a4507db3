"""What a query means and how it is evaluated: as text, as JSON, with the tree of joins."""
