"""A page that shows an answer: the question, the matches, how sure they are, what raw stamps would say."""
