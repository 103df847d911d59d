"""Braid at work on data that people know; `README.md` lists the commands."""
