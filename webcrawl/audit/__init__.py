"""Was a crawl polite?  Answers from the server's access logs and the robots files alone.

The auditor is the crawler's opponent, so it shares nothing with it: no module of webcrawl is imported here, and
robots.txt is read by a reader of its own.  A mistake in the crawler's rules is then not repeated by who checks them.

A line goes through these modules, in this order:

- `files` opens logs, puts lines back into the order of their times and merges several logs;
- `lines` and `jsonlines` read one line into a `Record` (`records`);
- `judging` holds each record against the rules, with one small state for each host: `lanes` proves pauses and
  overlaps, `robots` reads what RFC 9309 forbids;
- `report` counts the violations and says it all for people and for programs.

Everything but `files` takes values and gives values.  `scrapy audit` is the door.
"""
