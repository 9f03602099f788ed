"""The commands, one file each: their options and help; what they do is imported when they run."""
