"""Batches in this process."""
