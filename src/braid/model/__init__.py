"""The shared nouns: queries, windows, durations, errors.

Nothing here knows how a join is evaluated, where state lives, or that Spark exists.
"""
