"""The rules of the crawl: values in, values out.

Nothing here knows Scrapy, reads a clock, opens a file or writes a log. Time arrives as `now` and chance as `rng`, so
the same code decides in a real crawl, in a simulation and in a test. `lint-imports` checks the imports.
"""
