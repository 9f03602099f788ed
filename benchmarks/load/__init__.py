"""Many jobs at once for a real operator: the cluster they run on, and what is read off it."""
