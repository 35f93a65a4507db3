"""From matches to the result: projection, order and limit, the k best, expected counts."""
