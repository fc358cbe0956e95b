"""The commands: `scrapy <name>`, one file each, file name = command name."""
