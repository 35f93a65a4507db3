"""Places in the file system: results that appear whole or not at all, special files, the cache folder."""
