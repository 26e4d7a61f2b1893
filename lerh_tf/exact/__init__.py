"""What keeps the distribution of an estimate and saves the work."""
