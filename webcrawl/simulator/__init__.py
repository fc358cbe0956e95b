"""A web without the internet: hosts, pages and a real HTTP server on loopback.

Where to look first: `answers.py` says what a web is, `generated.py` and `folder.py` are the two webs there are,
`wire.py` reads requests, `server.py` answers them, `serving.py` runs the server as a child process
(`with serve(web) as server:`), `program.py` is the command line.  Nothing in this package opens a connection to
anything: it only listens on 127.0.0.1.
"""
