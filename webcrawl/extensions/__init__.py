"""Extensions: what listens to a whole crawl."""
