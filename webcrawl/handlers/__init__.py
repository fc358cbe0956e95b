"""Download handlers: how bytes are fetched; `http.LeanHttpHandler` is the one for DOWNLOAD_HANDLERS."""
