"""`python -m webcrawl.simulator`: the server without Scrapy."""

import sys

from webcrawl.simulator.program import main

if __name__ == "__main__":
    sys.exit(main())
