"""The spiders of this project, found by `scrapy list`: each file only names one, the code is in `webcrawl`."""
