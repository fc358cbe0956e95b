"""A web without the internet: hosts, pages and a real HTTP server on loopback.

Where to look first: `answers.py` says what a web is, `generated.py` and `folder.py` are the two webs there are,
`wire.py` reads requests, `server.py` answers them, `serving.py` runs the server as a child process
(`with serve(web) as server:`), `program.py` is the command line.

For proofs of politeness: `rules.py` reads rules for hosts, `robotsfiles.py` and `faults.py` say what they can be about,
`stage.py` plays them, `directives.py` is what pages ask of robots, `oracle.py` knows what a polite crawler fetches.

Nothing in this package opens a connection to anything: it only listens on loopback addresses.
"""
