"""What a running stage tells about itself: metric families, samples, and the HTTP endpoint."""
