"""Events in the gaps of matches, and the confidences that follow."""
