"""From raw text to token shards: sources, slices, readers, cleaning, sentences, words, tokens."""
