"""Plans: the shape of a join tree, the rounds that execute it, and how to explain both.

`tree` is the shape and its text, `orders` who probes whom first, `rounds` what is executed and
`lay_rounds` how a tree becomes that, `windows` how long rows must be kept; `explain` shows all
of it. Nothing here knows how a probe works or what Spark is.
"""
