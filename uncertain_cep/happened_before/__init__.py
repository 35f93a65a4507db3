"""The order of events: what certainly happened before what, and how likely it is where that is open."""
