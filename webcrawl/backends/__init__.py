"""Frontiers that keep their promises on real disks and servers; see `webcrawl.core.frontier` for the promises."""
